"""Bring staged files into sight: each commit once, whichever process calls it, however often.

A commit is first written down, under a name that only one process can create, and then rolled
forward file by file.  A file is moved by giving it a second name and taking the first away, which
never overwrites a file of somebody else.  Spark, Hive and SeaTunnel do not look into `.holdfast`.

    <path>/.holdfast/<staging>/...            staged, out of sight
    <path>/.holdfast/commits/<user>-<number>  what a commit moves where; done or not
"""

import contextlib
import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from holdfast.connect.sink import CommitId
from holdfast.connectors.files.opening import (
    HIDDEN,
    KEPT_S,
    FolderOrder,
    OpenedFolder,
    clear,
    forget_old,
    look,
    sync,
)
from holdfast.connectors.save_modes import data_exists
from holdfast.errors import UserError
from holdfast.model.tree import Plain

COMMITS = "commits"
VERSION = 1


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """What one write left out of sight: (staged, final) paths, relative to the root."""

    root: str
    folder: str
    files: tuple[tuple[str, str], ...]
    replace: bool = False  # a copy of a file replaces the file, a new one takes a free name

    def to_plain(self) -> Plain:
        """Return this as a checkpoint stores it."""
        return {
            "root": self.root,
            "folder": self.folder,
            "files": [list(pair) for pair in self.files],
            "replace": self.replace,
        }


@dataclass(frozen=True, slots=True)
class CommitLogEntry:
    """A commit as it is written down."""

    files: list[tuple[str, str, bool]]
    folders: list[str]
    done: bool = False
    version: int = VERSION


def look_at(order: FolderOrder) -> OpenedFolder:
    """Return what an incarnation found in a folder of files."""
    return look(order, partial(data_exists, "LocalFile", what="files"))


def commit(
    identifier: CommitId,
    staged: Sequence[StagedFiles],
    orders: Sequence[FolderOrder] = (),
    look: Callable[[FolderOrder], OpenedFolder] = look_at,
) -> None:
    """Do what the save modes say, and make everything staged visible.

    A repeated identifier changes nothing.  `look` finds out what is in a folder for a save mode.
    """
    first = {o.root: o for o in reversed(orders)}
    roots = dict.fromkeys([*first, *(s.root for s in staged)])
    logs = {r: (_Log(Path(r), identifier), [s for s in staged if s.root == r]) for r in roots}
    for log, part in logs.values():
        log.check(part)  # all folders, before anything shows in the first
    for root, (log, part) in logs.items():
        log.commit(part, first.get(root), look)


def abort(staged: Iterable[StagedFiles]) -> None:
    """Remove what was staged and is not committed."""
    for one in staged:
        shutil.rmtree(Path(one.root) / one.folder, ignore_errors=True)
        remove_if_empty(Path(one.root) / HIDDEN)


def unfinished(root: Path) -> set[str]:
    """Return the staged folders that commits which are written down still need."""
    needed: set[str] = set()
    for path in (root / HIDDEN / COMMITS).glob("[!.]*-*"):
        with contextlib.suppress(FileNotFoundError):
            entry = _load(path)
            needed.update(entry.folders if not entry.done else ())
    return needed


class _Log:
    """The commits of one user in one folder."""

    def __init__(self, root: Path, identifier: CommitId) -> None:
        self.root = root
        self.identifier = identifier
        self.folder = root / HIDDEN / COMMITS
        self.user = quote(identifier.user, safe="")
        self.path = self.folder / f"{self.user}-{identifier.number}"

    def check(self, staged: Sequence[StagedFiles]) -> None:
        """Raise UserError if what this commit needs is gone, and the commit is yet to come."""
        missing = None if self.path.exists() else _first_missing(self.root, staged)
        if missing:
            self._done_by_others(missing)

    def commit(
        self,
        staged: Sequence[StagedFiles],
        order: FolderOrder | None,
        look: Callable[[FolderOrder], OpenedFolder],
    ) -> None:
        """Write the commit down and make it, unless that was done before."""
        lower, later = self._others()
        if later:
            return  # a higher number is written down only after this one was done
        if lower:
            self._finish(lower[-1], _load(lower[-1]))
        opened = look(order) if order and not self.path.exists() else None
        entry = self._written_down(staged, opened)
        if entry is None:
            return
        if order and not entry.done:
            clear(order, opened or look(order))
        self._finish(self.path, entry)
        # Below the highest of them, one that is not done was written down by somebody who woke
        # too late: it repeats a commit that was done before the next one began.
        for path in lower:
            path.unlink(missing_ok=True)
        self._prune()

    def _others(self) -> tuple[list[Path], bool]:
        """Return the entries with lower numbers, in order; and whether there is a higher one."""
        mine = self.identifier.number
        found = sorted(
            (number, path) for path, user, number in self._entries() if user == self.user
        )
        later = any(number > mine for number, _ in found)
        return [path for number, path in found if number < mine], later

    def _entries(self) -> Iterator[tuple[Path, str, int]]:
        """Yield all that is written down: where, by which user, under which number."""
        for path in self.folder.glob("[!.]*-*"):
            user, _, number = path.name.rpartition("-")
            if number.isdigit():
                yield path, user, int(number)

    def _written_down(
        self, staged: Sequence[StagedFiles], opened: OpenedFolder | None
    ) -> CommitLogEntry | None:
        """Return this commit's entry; the first process to create it decides what it says.

        None if this commit was done before: then others have gone on to higher numbers.
        """
        if self.path.exists():
            return _load(self.path)
        if missing := _first_missing(self.root, staged):
            return self._done_by_others(missing)
        self.folder.mkdir(parents=True, exist_ok=True)
        entry = CommitLogEntry(_chosen(self.root, staged, opened), [s.folder for s in staged])
        draft = self.folder / f".{self.path.name}.{os.getpid()}.{time.monotonic_ns()}"
        _store(draft, entry)
        try:
            _give_name(draft, self.path)
        except FileExistsError:
            entry = _load(self.path)
        draft.unlink(missing_ok=True)
        sync(self.folder)
        if self._others()[1]:
            # We slept since we looked.  What we have written down says nothing any more.
            self.path.unlink(missing_ok=True)
            return None
        return entry

    def _done_by_others(self, missing: tuple[str, str]) -> CommitLogEntry | None:
        """Return the entry, or None, of a commit that another process has finished since we looked.

        Raises UserError if none has: then what was staged is lost, and nothing of it shows.
        """
        if self._others()[1]:
            return None
        if self.path.exists():
            return _load(self.path)
        raise _lost(self.root / missing[0], self.root / missing[1])

    def _finish(self, path: Path, entry: CommitLogEntry) -> None:
        """Move every file of an entry that is not in its place yet."""
        if entry.done:
            return
        parents: dict[Path, None] = {}
        for source, target, overwrite in entry.files:
            made = _move(self.root / source, self.root / target, overwrite)
            parents |= dict.fromkeys(made)
        for parent in parents:
            sync(parent)
        for folder in entry.folders:
            shutil.rmtree(self.root / folder, ignore_errors=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
        _store(draft, replace(entry, done=True))
        draft.replace(path)
        sync(self.folder)

    def _prune(self) -> None:
        """Remove what jobs that ended long ago have left."""
        oldest = time.time() - KEPT_S
        for path in self.folder.glob(".*"):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()
        entries = sorted(self._entries(), key=lambda e: (e[1], e[2]))
        for _, of_user in groupby(entries, key=lambda e: e[1]):
            paths = [path for path, _, _ in of_user]
            with contextlib.suppress(FileNotFoundError):
                if paths[-1].stat().st_mtime < oldest and _load(paths[-1]).done:
                    for path in paths:  # the highest last: without it the others would count
                        path.unlink()
        users = {user for _, user, _ in self._entries()}
        forget_old(self.root, lambda life: any(u.startswith(f"{life}.") for u in users))


def _chosen(
    root: Path, staged: Sequence[StagedFiles], opened: OpenedFolder | None
) -> list[tuple[str, str, bool]]:
    """Return every move, with a free name for each file that is not to replace another."""
    taken = opened.names if opened else set[str]()
    moves: list[tuple[str, str, bool]] = []
    for one in staged:
        for source, target in one.files:
            final = target if one.replace else _free(root, target, taken)
            taken.add(final)
            moves.append((source, final, one.replace))
    return moves


def _free(root: Path, target: str, taken: set[str]) -> str:
    folder, slash, name = target.rpartition("/")
    stem, dot, ending = name.partition(".")
    number, free = 0, target
    while free in taken or (root / free).exists():
        number += 1
        free = f"{folder}{slash}{stem}_{number}{dot}{ending}"
    return free


def _first_missing(root: Path, staged: Sequence[StagedFiles]) -> tuple[str, str] | None:
    """Return the first (staged, final) pair of which no file is staged any more."""
    pairs = (pair for one in staged for pair in one.files)
    return next((pair for pair in pairs if not (root / pair[0]).exists()), None)


def _lost(source: Path, target: Path) -> UserError:
    return UserError(
        f"Cannot commit {target}: neither it nor the staged {source} exists."
        " Somebody has moved or removed it; read back what is there before going on.",
        code="sink.staged_missing",
    )


def _move(source: Path, target: Path, overwrite: bool) -> list[Path]:
    """Put one file in its place, unless somebody does so now; return the folders that changed."""
    made = [p for p in (target.parent, *target.parents) if not p.exists()]
    while True:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            if overwrite:
                source.replace(target)
            else:
                _name_freely(source, target)
            break
        except FileNotFoundError:
            if target.exists():
                return []
            if not source.exists():
                raise _lost(source, target) from None
            # Somebody who empties the folder has just removed ours, as nothing was in it.
    source.unlink(missing_ok=True)
    return [target.parent, *(p.parent for p in made)]


def _name_freely(source: Path, target: Path) -> None:
    """Give a file its name, or the next free one if somebody has taken that meanwhile."""
    folder, taken = target.parent, set[str]()
    name = target.name
    while True:
        try:
            return _give_name(source, folder / name)
        except FileExistsError:
            if (folder / name).samefile(source):
                return None
        taken.add(name)
        name = _free(folder, target.name, taken)


def _give_name(source: Path, target: Path) -> None:
    """Give a file another name if that is free; FileExistsError if not.  `source` may go."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.EXDEV):
            raise
        # Not every file system can give a file two names.
        if target.exists():
            raise FileExistsError(errno.EEXIST, "file exists", str(target)) from error
        source.rename(target)


def _load(path: Path) -> CommitLogEntry:
    stored = json.loads(path.read_text())
    files = [(str(s), str(t), bool(o)) for s, t, o in stored["files"]]
    return CommitLogEntry(files, [str(f) for f in stored["folders"]], bool(stored["done"]))


def _store(path: Path, entry: CommitLogEntry) -> None:
    with path.open("x") as file:
        json.dump(asdict(entry), file)
        file.flush()
        os.fsync(file.fileno())


def remove_if_empty(folder: Path) -> None:
    """Remove a folder unless there is something in it, or it is gone."""
    with contextlib.suppress(OSError):
        folder.rmdir()
