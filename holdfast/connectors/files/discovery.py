"""Which files a table has: listing, filters, and the partition values in their paths."""

import fcntl
import os
import re
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from holdfast.connectors.files.format import FileFormat
from holdfast.errors import UserError

if TYPE_CHECKING:
    from holdfast.connectors.files.source_options import FileTable

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The folder name of a null partition value."""

MOUNTS = Path("/proc/self/mountinfo")
EXACT = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs", "overlay"})
"""File systems that keep the times of their files themselves, to the moment."""

MARKS = frozenset(
    {"_SUCCESS", "_metadata", "_common_metadata", "_temporary", "_delta_log", "_spark_metadata"}
)
"""Names of files and folders that other engines keep next to data."""

_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class FoundFile:
    """A file to read.  `changed_ns` grows whenever a file is written or moved into place.

    `moved`: its last change was no write.  It got its name then, or other rights.
    """

    path: str
    changed_ns: int
    size: int
    moved: bool = False


def local_path(path: str) -> str:
    """Return a path of this machine, absolute, from what a job file gives."""
    if path.startswith("file:"):
        path = re.sub(r"^file:/*", "/", path)
    return os.path.abspath(path)  # noqa: PTH100 (keeps symbolic links, as users see them)


def find_files(table: "FileTable") -> list[FoundFile]:
    """Return the files of a table, sorted by path.

    Hidden files and folders (`.` first), marks of other engines (`_SUCCESS` and its like) and empty
    files are no data; for a copy of files, empty ones are.  Raises UserError if the path does not
    exist or cannot be listed.
    """
    root = local_path(table.path)
    if not os.path.lexists(root):
        raise UserError(
            f"LocalFile cannot read {root}: there is no such file or folder. Check option path.",
            code="source.path_missing",
        )
    try:
        found = list(_walk(root))
    except OSError as error:
        raise UserError(
            f"LocalFile cannot list {error.filename or root}: {error.strerror}.",
            code="source.path_unreadable",
        ) from error
    all_sizes = table.file_format_type is FileFormat.BINARY
    return sorted(f for f in found if (f.size or all_sizes) and _wanted(f, root, table))


def partitions_of(path: str) -> dict[str, str | None]:
    """Return the `name=value` folders above a file, outermost first."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, is_pair, value = part.partition("=")
        if is_pair and name:
            values[unquote(name)] = None if value == DEFAULT_PARTITION else unquote(value)
    return values


def partition_names(table: "FileTable", files: Sequence[FoundFile]) -> list[str]:
    """Return the partition columns that the paths of these files add."""
    if not table.parse_partition_from_path:
        return []
    return list(dict.fromkeys(name for f in files for name in partitions_of(f.path)))


def filter_pattern(text: str) -> re.Pattern[str]:
    """Return a Java regular expression as Python's."""
    return re.compile(_QUOTED.sub(lambda m: re.escape(m[1]), text))


def parse_time(text: str) -> datetime | None:
    """Return a local time such as `2024-01-31 16:00:00`, or None if it is none."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def _walk(path: str) -> Iterator[FoundFile]:
    if not os.path.isdir(path):  # noqa: PTH112
        yield _found(path)
        return
    with os.scandir(path) as entries:
        for entry in entries:
            if _is_aside(entry.name):
                continue
            if entry.is_dir():
                yield from _walk(entry.path)
            elif entry.is_file():
                yield _found(entry.path)


def _is_aside(name: str) -> bool:
    """Say whether a name is that of a hidden file, or of a mark that is no data."""
    marks = name in MARKS or name.startswith(("_started_", "_committed_"))
    return marks or (name.startswith(".") and "=" not in name)


def _found(path: str) -> FoundFile:
    stat = os.stat(path)  # noqa: PTH116
    # A file moved into place keeps the time it was written, so that time alone would miss it.
    moved = stat.st_ctime_ns > stat.st_mtime_ns and _times_tell(stat.st_dev)
    return FoundFile(path, max(stat.st_mtime_ns, stat.st_ctime_ns), stat.st_size, moved)


@cache
def _times_tell(device: int) -> bool:
    """Say whether a write always changes both times of a file on this device, and at once.

    Network file systems, and some in user space, bring one of them up to date later.
    """
    if not MOUNTS.exists():
        return False
    name = f"{os.major(device)}:{os.minor(device)}"
    lines = [line.partition(" - ") for line in MOUNTS.read_text().splitlines()]
    kinds = {after.split()[0] for before, _, after in lines if before.split()[2] == name}
    return bool(kinds) and kinds <= EXACT


def came_whole(file: FoundFile) -> bool:
    """Say whether a file was moved into place, and no process has it open to write more.

    The kernel gives a read lease only on a file that no process can write to.  Where that cannot be
    found out, the answer is no: the file has another owner, the file system has no leases, the file
    is gone.
    """
    if not file.moved:
        return False
    try:
        number = os.open(file.path, os.O_RDONLY)
    except OSError:
        return False
    try:
        # A process that opens the file just now is reported by a signal: one that ends no process.
        fcntl.fcntl(number, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(number, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    finally:
        os.close(number)
    return True


def _wanted(file: FoundFile, root: str, table: "FileTable") -> bool:
    name = file.path.rsplit("/", 1)[-1]
    pattern = table.file_filter_pattern
    if pattern is not None:
        shapes = (name, file.path, file.path[len(root) :].lstrip("/"))
        if not any(filter_pattern(pattern).fullmatch(s) for s in shapes):
            return False
    if table.filename_extension and not name.endswith(table.filename_extension):
        return False
    if table.read_partitions and not any(p in file.path for p in table.read_partitions):
        return False
    return _in_time(file.path, table)


def _in_time(path: str, table: "FileTable") -> bool:
    start = table.file_filter_modified_start and parse_time(table.file_filter_modified_start)
    end = table.file_filter_modified_end and parse_time(table.file_filter_modified_end)
    if not start and not end:
        return True
    changed = datetime.fromtimestamp(os.stat(path).st_mtime)  # noqa: PTH116
    return (not start or changed >= start) and (not end or changed < end)
