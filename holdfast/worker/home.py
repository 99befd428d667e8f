"""Where Holdfast keeps state on disk: HOLDFAST_HOME, or ~/.holdfast.

    cache/         what makes later starts fast; may be deleted at any time
    logs/          one log for each job, and Spark's beside it
    spark-local/   one scratch folder for each running process, gone when it ends
    warehouse/     where Spark puts tables that a job creates without a place

A scratch folder belongs to whoever holds the lock on its `lock` file, so a process that was killed
leaves a folder that the next one can tell from a living one, even across containers that share the
disk.  What lies elsewhere (a short folder for sockets, a user's `spark.local.dir`) is a link inside
the scratch folder, so wiping follows the links.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UserError

SOCKETS_LENGTH_MAX = 60
"""A Unix socket's path has at most 104 bytes (macOS), and Spark's file names take 43 of them."""


def root() -> Path:
    """Return the folder for everything Holdfast keeps; it need not exist."""
    return Path(os.environ.get("HOLDFAST_HOME") or Path.home() / ".holdfast").absolute()


def cache() -> Path:
    """Return the folder of what makes later starts fast."""
    return _made(root() / "cache")


def logs() -> Path:
    """Return the folder of the logs."""
    return _made(root() / "logs")


def warehouse() -> Path:
    """Return where Spark puts tables that are created without a place; it need not exist."""
    return root() / "warehouse"


@dataclass(frozen=True)
class Scratch:
    """One process's own folder, held until `remove` or the end of the process."""

    path: Path
    sockets: Path
    _lock: int

    def local_folders(self, elsewhere: Sequence[str]) -> list[Path]:
        """Return where Spark spills to: folders of our own inside the given ones, else here."""
        if not elsewhere:
            return [_made(self.path / "spill")]
        folders = [_made(Path(parent).absolute() / self.path.name) for parent in elsewhere]
        for number, folder in enumerate(folders):
            link = self.path / f"spill-{number}"
            if not link.is_symlink():
                link.symlink_to(folder)
        return folders

    def remove(self) -> None:
        """Delete the folder and what it links to.  Safe to repeat."""
        if self.path.exists():
            _delete(self.path)
            os.close(self._lock)


def claim_scratch() -> Scratch:
    """Make a scratch folder for this process."""
    parent = _made(root() / "spark-local")
    with _locked(parent / ".lock"):
        path = parent / f"holdfast-{secrets.token_hex(4)}"
        path.mkdir(mode=0o700)
        lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return Scratch(path, _socket_folder(path), lock)


def wipe_stale() -> None:
    """Delete the scratch folders of processes that are gone."""
    parent = _made(root() / "spark-local")
    with _locked(parent / ".lock"):
        stale = [path for path in parent.glob("holdfast-*") if not _is_held(path / "lock")]
    for path in stale:
        _delete(path)


def _socket_folder(scratch: Path) -> Path:
    """Return a folder whose path leaves room for a socket's name."""
    link = scratch / "sockets"
    if len(os.fsencode(link)) <= SOCKETS_LENGTH_MAX:
        return _made(link)
    # macOS keeps a deep folder for temporary files; /tmp is short everywhere.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-", dir="/tmp"))
    link.symlink_to(folder)
    return folder


def _delete(scratch: Path) -> None:
    for link in [path for path in scratch.glob("*") if path.is_symlink()]:
        shutil.rmtree(link.resolve(), ignore_errors=True)
    # Another process may be wiping the same folder; whoever is late finds nothing.
    shutil.rmtree(scratch, ignore_errors=True)


def _is_held(lock: Path) -> bool:
    """Say whether a living process holds this lock."""
    try:
        with lock.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file for the length of a `with` block, waiting for it if need be."""
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"Holdfast cannot create the folder {folder}: {error.strerror}. Make it writable,"
            " or set HOLDFAST_HOME to a folder that is.",
            code="home.not_writable",
        ) from error
    return folder
