"""Blobs in a folder: written under another name, flushed, and then given their own."""

import contextlib
import errno
import os
import uuid
from pathlib import Path

from holdfast.errors import OutcomeUnknown

TRIES = 3


class Folder:
    """Objects as files below a root."""

    def __init__(self, root: str) -> None:
        self.root = Path(root).absolute()

    def write(self, name: str, content: bytes) -> None:
        """Create a file, whole, if its name is free."""
        path = self.root / name
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        made = self._draft(draft, content)
        try:
            _give_name(draft, path)
        finally:
            # A full disk must not keep a file that is never read.
            draft.unlink(missing_ok=True)
        try:
            for folder in (path.parent, *made):
                _sync(folder)
        except OSError as error:
            raise OutcomeUnknown(
                f"{path} may not survive a power cut: {error.strerror}.", code="blob.unknown"
            ) from error

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        try:
            return (self.root / name).read_bytes()
        except NotADirectoryError as error:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name) from error

    def remove(self, name: str) -> None:
        """Remove a file, and with the last one of a folder the folder."""
        path = self.root / name
        path.unlink()
        for folder in path.parents:
            if folder == self.root or not _remove_if_done(folder):
                break

    def names(self, below: str) -> list[str]:
        """Return the names of all files below a folder."""
        return [
            str((Path(folder) / name).relative_to(self.root))
            for folder, _, names in os.walk(self.root / below, onerror=_unless_missing)
            for name in names
        ]

    def _draft(self, draft: Path, content: bytes) -> list[Path]:
        """Write a file under a hidden name; return the folders that got a new folder."""
        for left in reversed(range(TRIES)):
            missing = [p for p in draft.parents if not p.exists()]
            _make(draft.parent)
            try:
                with draft.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                return [p.parent for p in missing]
            except FileNotFoundError:
                # Another process removed the folder because it was empty.
                if not left:
                    raise
            except OSError:
                draft.unlink(missing_ok=True)
                raise
        raise AssertionError("the last try raises")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        # There is a file in place of the folder, so there is no object of this name.
        why = os.strerror(errno.ENOTDIR)
        raise NotADirectoryError(errno.ENOTDIR, why, str(folder)) from error


def _give_name(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
            raise
        # Not every file system can give a file two names; no two writers use one name.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from error
        draft.rename(path)


def _remove_if_done(folder: Path) -> bool:
    """Remove a folder that holds nothing but drafts of processes that died; say whether it did."""
    if any(not entry.name.startswith(".") for entry in folder.iterdir()):
        return False
    for draft in folder.glob(".*"):
        if draft.is_file():
            draft.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
        return True
    return False


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
