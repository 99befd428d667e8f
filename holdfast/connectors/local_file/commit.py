"""Bring staged files into sight: each commit once, whoever calls it and however often.

A commit is first written down, under a name that only one process can create, and then rolled
forward file by file.  A file is moved by giving it a second name and taking the first away, which
never overwrites a file of somebody else.  Spark, Hive and SeaTunnel do not look into `.holdfast`.

    <path>/.holdfast/<staging>/...            staged, nobody sees it
    <path>/.holdfast/commits/<user>-<number>  what a commit moves where; done or not
"""

import contextlib
import errno
import json
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import quote

from holdfast.connect.sink import Identifier
from holdfast.errors import OutcomeUnknown
from holdfast.model.tree import Plain

HIDDEN = ".holdfast"
COMMITS = "commits"
VERSION = 1
KEPT_S = 7 * 24 * 3600
"""How long the log of a finished job's last commit is kept, for late repeats of it."""


@dataclass(frozen=True, slots=True)
class Staged:
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

    @classmethod
    def from_plain(cls, content: Plain) -> "Staged":
        """Read what `to_plain` wrote."""
        assert isinstance(content, dict)
        files = content["files"]
        assert isinstance(files, list)
        pairs = [pair for pair in files if isinstance(pair, list)]
        return cls(
            str(content["root"]),
            str(content["folder"]),
            tuple((str(p[0]), str(p[1])) for p in pairs),
            bool(content["replace"]),
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A commit as it is written down."""

    files: list[tuple[str, str, bool]]
    folders: list[str]
    done: bool = False
    version: int = VERSION


def commit(identifier: Identifier, staged: Sequence[Staged]) -> None:
    """Make everything staged visible.  A repeated identifier changes nothing."""
    for root in dict.fromkeys(s.root for s in staged):
        _Log(Path(root), identifier).commit([s for s in staged if s.root == root])


def abort(staged: Iterable[Staged]) -> None:
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

    def __init__(self, root: Path, identifier: Identifier) -> None:
        self.root = root
        self.identifier = identifier
        self.folder = root / HIDDEN / COMMITS
        self.user = quote(identifier.user, safe="")
        self.path = self.folder / f"{self.user}-{identifier.number}"

    def commit(self, staged: Sequence[Staged]) -> None:
        before, later = self._others()
        if later:
            return  # a higher number is written down only after this one was done
        for path in before:
            self._finish(path, _load(path))
        self._finish(self.path, self._written_down(staged))
        for path in before:
            path.unlink(missing_ok=True)
        self._prune()

    def _others(self) -> tuple[list[Path], bool]:
        """Return the entries with lower numbers, and whether there is one with a higher."""
        lower: list[Path] = []
        for path in self.folder.glob("*-*"):
            user, _, number = path.name.rpartition("-")
            if user != self.user or not number.isdigit():
                continue
            if int(number) > self.identifier.number:
                return [], True
            if int(number) < self.identifier.number:
                lower.append(path)
        return lower, False

    def _written_down(self, staged: Sequence[Staged]) -> Entry:
        """Return this commit's entry; the first process to create it decides what it says."""
        if self.path.exists():
            return _load(self.path)
        self.folder.mkdir(parents=True, exist_ok=True)
        entry = Entry(_chosen(self.root, staged), [s.folder for s in staged])
        draft = self.folder / f".{self.path.name}.{os.getpid()}.{time.monotonic_ns()}"
        _store(draft, entry)
        try:
            _give_name(draft, self.path)
        except FileExistsError:
            entry = _load(self.path)
        draft.unlink(missing_ok=True)
        _sync(self.folder)
        return entry

    def _finish(self, path: Path, entry: Entry) -> None:
        """Move every file of an entry that is not in its place yet."""
        if entry.done:
            return
        parents: dict[Path, None] = {}
        for source, target, overwrite in entry.files:
            made = _move(self.root / source, self.root / target, overwrite)
            parents |= dict.fromkeys(made)
        for parent in parents:
            _sync(parent)
        for folder in entry.folders:
            shutil.rmtree(self.root / folder, ignore_errors=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
        _store(draft, replace(entry, done=True))
        draft.replace(path)
        _sync(self.folder)

    def _prune(self) -> None:
        """Remove what jobs that ended long ago have left."""
        oldest = time.time() - KEPT_S
        for path in self.folder.iterdir():
            with contextlib.suppress(FileNotFoundError):
                is_old = path.stat().st_mtime < oldest
                if is_old and (path.name.startswith(".") or _load(path).done):
                    path.unlink()


def _chosen(root: Path, staged: Sequence[Staged]) -> list[tuple[str, str, bool]]:
    """Return every move, with a free name for each file that is not to replace another."""
    taken: set[str] = set()
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


def _move(source: Path, target: Path, overwrite: bool) -> list[Path]:
    """Put one file in its place; return the folders that changed."""
    if not source.exists():
        if target.exists():
            return []
        raise OutcomeUnknown(
            f"LocalFile cannot commit {target}: neither it nor the staged {source} exists."
            " Somebody has moved or removed it; read back what is there before going on.",
            code="sink.commit_unknown",
        )
    made = [p for p in (target.parent, *target.parents) if not p.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    if overwrite:
        source.replace(target)
    elif not (target.exists() and target.samefile(source)):
        _give_name(source, target)
    source.unlink(missing_ok=True)
    return [target.parent, *(p.parent for p in made)]


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


def _load(path: Path) -> Entry:
    stored = json.loads(path.read_text())
    files = [(str(s), str(t), bool(o)) for s, t, o in stored["files"]]
    return Entry(files, [str(f) for f in stored["folders"]], bool(stored["done"]))


def _store(path: Path, entry: Entry) -> None:
    with path.open("x") as file:
        json.dump(asdict(entry), file)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder unless there is something in it, or it is gone."""
    with contextlib.suppress(OSError):
        folder.rmdir()
