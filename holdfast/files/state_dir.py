"""Where Holdfast keeps state on disk: HOLDFAST_HOME, or ~/.holdfast.

    cache/         what makes later starts fast; may be deleted at any time
    logs/          one log for each job, and Spark's next to it
    spark-local/   one scratch folder for each running process, gone when it ends
    warehouse/     where Spark puts tables that a job creates without a place

A scratch folder belongs to the process that holds the lock on its `lock` file, so a process that
was killed leaves a folder that the next one can tell from a living one, even across containers that
share the disk.  What lies elsewhere (a short folder for sockets, a user's `spark.local.dir`) is a
link inside the scratch folder, so wiping follows the links.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UserError

RUN = "run-in"
"""A file in the scratch folder of a run: the directory it began in, to which its paths may be
relative.  As long as it is there, the run may owe something."""

RUN_KEPT_S = 7 * 24 * 3600
"""How long a dead run waits for another one in its directory to finish what it owes."""

DELETE_TRIES = 40
DELETE_PAUSE_S = 0.05
"""What cannot be deleted in that time is left to the next process that starts."""

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

    def run_folder(self) -> Path:
        """Return the folder for what a run must not lose when it is killed."""
        return self.path / "run"

    def mark_run(self) -> None:
        """Note that a run begins here and now."""
        (self.path / RUN).write_text(str(Path.cwd()))

    def remove(self) -> None:
        """Delete the folder and what it links to.  Safe to repeat."""
        if self.path.exists():
            _delete(self.path)
            self.release()

    def release(self) -> None:
        """Leave the folder to the next process."""
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
    """Delete the scratch folders of processes that are gone and owe nothing."""
    parent = _made(root() / "spark-local")
    with _locked(parent / ".lock"):
        stale = [
            path
            for path in parent.glob("holdfast-*")
            if not _is_held(path / "lock") and not _may_owe(path / RUN)
        ]
    for path in stale:
        _delete(path)


def adopt_runs() -> list[Scratch]:
    """Take over the scratch folders of dead runs that began in the directory we are in."""
    parent = _made(root() / "spark-local")
    adopted = []
    with _locked(parent / ".lock"):
        for path in sorted(parent.glob("holdfast-*")):
            if _may_owe(path / RUN) and (path / RUN).read_text() == str(Path.cwd()):
                lock = _taken(path / "lock")
                if lock is not None:
                    adopted.append(Scratch(path, path / "sockets", lock))
    return adopted


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
    for _ in range(DELETE_TRIES):
        # Another process may be wiping the same folder, and leave nothing to delete.
        shutil.rmtree(scratch, ignore_errors=True)
        if not scratch.exists():
            return
        time.sleep(DELETE_PAUSE_S)  # a JVM that is just dying still adds files


def _is_held(lock: Path) -> bool:
    """Say whether a living process holds this lock."""
    taken = _taken(lock)
    if taken is not None:
        os.close(taken)
    return taken is None and lock.exists()


def _taken(lock: Path) -> int | None:
    """Take a lock; None if a living process holds it, or if it is not there."""
    try:
        file = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        return None
    return file


def _may_owe(mark: Path) -> bool:
    """Say whether a dead run may have left something that is worth finishing."""
    try:
        return time.time() - mark.stat().st_mtime < RUN_KEPT_S
    except FileNotFoundError:
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
