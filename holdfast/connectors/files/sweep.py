"""Remove what was staged and will never be committed.

What a commit has written down and not yet moved is never touched: the process that rolls that
commit forward needs it.  Symbolic links are not followed: what lies behind them is not ours.
"""

import errno
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from holdfast.connect.sink import Leftovers
from holdfast.connectors.files.committer import COMMITS, remove_if_empty, unfinished
from holdfast.connectors.files.opening import HIDDEN

REMOVALS = 5

_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
_TABLE = re.compile(r"-t\d+")


def sweep(path: str, leftovers: Leftovers) -> None:
    """Remove leftovers below every folder that a path with placeholders may have named."""
    ours = safe_leftovers(leftovers)
    for root in folders_like(path):
        hidden = root / HIDDEN
        if hidden.is_symlink() or not hidden.is_dir():
            continue
        needed = unfinished(root)
        for entry in list(os.scandir(hidden)):
            if entry.name == COMMITS or not entry.is_dir(follow_symlinks=False):
                continue
            staged = _staged_as(entry.name)
            if staged and ours.include(staged) and f"{HIDDEN}/{entry.name}" not in needed:
                remove_tree(Path(entry.path))
        remove_if_empty(hidden)


def folders_like(path: str) -> Iterator[Path]:
    """Yield the folders that exist for a path, whatever its placeholders stand for."""
    pieces = _PLACEHOLDER.sub("\0", path).split("/")
    yield from _below(Path("/" if path.startswith("/") else "."), [p for p in pieces if p])


def remove_tree(folder: Path) -> None:
    """Remove a folder and what is in it; that another process does so too is no error.

    Nor is a task that was cancelled and has not noticed: it may make one more file meanwhile.
    """

    def unless_gone(call: object, path: str, error: BaseException) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for left in reversed(range(REMOVALS)):
        try:
            shutil.rmtree(folder, onerror=lambda call, path, info: unless_gone(call, path, info[1]))
            return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or not left:
                raise


def safe(text: str) -> str:
    """Return a text that can stand in a file name."""
    return re.sub(r"[^\w.-]", "_", text)


def safe_leftovers(leftovers: Leftovers) -> Leftovers:
    """Return leftovers as the names of files spell them."""
    task = None if leftovers.task is None else safe(leftovers.task)
    return Leftovers(safe(leftovers.job_id), safe(leftovers.incarnation), task, leftovers.before)


def _staged_as(name: str) -> str:
    """Return the name of the try that a staged folder is of; nothing if it is no such folder."""
    stem, dash, number = name.rpartition("-")
    return stem if _TABLE.fullmatch(dash + number) else ""


def _below(folder: Path, pieces: list[str]) -> Iterator[Path]:
    if not pieces:
        if folder.is_dir():
            yield folder
        return
    first, *rest = pieces
    if "\0" not in first:
        yield from _below(folder / first, rest)
        return
    pattern = re.compile(".*".join(re.escape(part) for part in first.split("\0")))
    try:
        found = sorted(os.scandir(folder), key=lambda e: e.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in found:
        if pattern.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
            yield from _below(Path(entry.path), rest)
