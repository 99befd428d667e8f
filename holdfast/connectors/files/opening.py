"""What an incarnation of a job does to a folder, once, before its first rows show.

The files that are to go are listed once, in a file that only one process can make, and only what it
lists is ever removed, and only as long as it is the same file.  So a commit that is repeated, or
one that wakes when the job is long over, removes nothing that came later.

    <path>/.holdfast/opened/<life>   what an incarnation has found here, and whether it is gone
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from holdfast.connect.sink import Committable
from holdfast.errors import UserError
from holdfast.model.tree import Plain

HIDDEN = ".holdfast"
OPENED = "opened"
VERSION = 1
KEPT_S = 7 * 24 * 3600
"""How long it is remembered what an incarnation did that has ended."""

Mode = Literal["clear", "empty", "ignore"]
"""Remove what is there, refuse if there is anything, or show nothing if there is anything."""

Refuse = Callable[[Path], UserError]

Seen = tuple[str, int, int, int]
"""A file below the folder, and what distinguishes it from another one of its name."""


@dataclass(frozen=True, slots=True)
class FolderOrder:
    """What is to be done to a folder, for which incarnation (`life`)."""

    root: str
    life: str
    mode: Mode

    def committable(self, table: str) -> Committable:
        """Return this for a checkpoint."""
        content: Plain = {"root": self.root, "life": self.life, "mode": self.mode}
        return Committable(VERSION, table, 0, 0, content, opening=True)


@dataclass(frozen=True, slots=True)
class OpenedFolder:
    """A folder as an incarnation found it: the files that are to go, or that keep it from
    writing."""

    files: list[Seen]
    ignored: bool = False
    done: bool = False
    version: int = VERSION

    @property
    def names(self) -> set[str]:
        """Names that no file of this incarnation may take: one that still clears would remove
        it."""
        return {name for name, *_ in self.files}

    @classmethod
    def find(cls, root: Path, life: str) -> "OpenedFolder | None":
        """Return what an incarnation has found in a folder; None if it has not looked."""
        try:
            stored = json.loads(_path(root, life).read_text())
        except FileNotFoundError:
            return None
        files = [(str(n), int(i), int(m), int(s)) for n, i, m, s in stored["files"]]
        return cls(files, bool(stored["ignored"]), bool(stored["done"]))


def _everything(_name: str) -> bool:
    """Count every file as data."""
    return True


def look(
    order: FolderOrder, refuse: Refuse, is_data: Callable[[str], bool] = _everything
) -> OpenedFolder:
    """Return what an incarnation found in a folder; the first process to write it down decides.

    Raises what `refuse` returns where there should have been nothing.
    """
    root = Path(order.root)
    known = OpenedFolder.find(root, order.life)
    if known is not None:
        return known
    there = [seen for seen in files_in(root) if is_data(seen[0])]
    match order.mode:
        case "clear":
            made = OpenedFolder(there, done=not there)
        case "ignore":
            made = OpenedFolder([], ignored=bool(there), done=True)
        case "empty":
            made = OpenedFolder([], done=True)
            if there:
                raise refuse(root)
    target = _path(root, order.life)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = _store(target, made)
    try:
        os.link(draft, target)
    except FileExistsError:
        pass
    finally:
        draft.unlink(missing_ok=True)
    sync(target.parent)
    return OpenedFolder.find(root, order.life) or made


def clear(order: FolderOrder, opened: OpenedFolder) -> None:
    """Remove the files that an incarnation found, unless that was done."""
    if opened.done:
        return
    root = Path(order.root)
    for name, *seen in opened.files:
        path = root / name
        if _seen(path) == tuple(seen):
            path.unlink(missing_ok=True)
            for folder in path.relative_to(root).parents[:-1]:
                with contextlib.suppress(OSError):
                    (root / folder).rmdir()
    sync(root)
    target = _path(root, order.life)
    _store(target, replace(opened, done=True)).replace(target)
    sync(target.parent)


def forget_old(root: Path, needed: Callable[[str], bool]) -> None:
    """Forget incarnations that ended long ago; `needed` says which are not."""
    oldest = time.time() - KEPT_S
    for path in (root / HIDDEN / OPENED).glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < oldest and not needed(path.name):
                path.unlink()


def files_in(root: Path) -> Iterator[Seen]:
    """Yield the files below a folder; what jobs have hidden there is no data."""
    for folder, below, names in os.walk(root):
        links = [n for n in below if Path(folder, n).is_symlink()]
        below[:] = sorted(n for n in below if n not in links and not _is_ours(n))
        for name in sorted([*names, *links]):
            path = Path(folder, name)
            seen = _seen(path)
            if seen:
                yield str(path.relative_to(root)), *seen


def has_data(root: Path) -> bool:
    """Say whether there are files below a folder."""
    return next(files_in(root), None) is not None


def sync(folder: Path) -> None:
    """Make names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _is_ours(name: str) -> bool:
    return name == HIDDEN or name.startswith(f"{HIDDEN}-")


def _path(root: Path, life: str) -> Path:
    return root / HIDDEN / OPENED / quote(life, safe="")


def _seen(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _store(target: Path, opened: OpenedFolder) -> Path:
    draft = target.with_name(f".{target.name}.{os.getpid()}.{time.monotonic_ns()}")
    with draft.open("x") as file:
        json.dump(asdict(opened), file)
        file.flush()
        os.fsync(file.fileno())
    return draft
