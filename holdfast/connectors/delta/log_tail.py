"""The little of a Delta table's log that a commit must know, and how the next version gets in.

The library reads every file of a table before each commit, so a commit costs more the longer a job
runs.  A tail is read by the library once; from then on it is brought up to date by reading the
versions that came in since, and a commit costs the same however large the table is.

A version is a file that only one committer can create: a draft is written next to it, and a hard
link gives the draft the version's name unless the name is taken.
"""

import errno
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from holdfast.connectors.delta.library import DeltaLog
from holdfast.connectors.delta.log_lines import telling
from holdfast.connectors.lake.location import Location

LOG = "_delta_log"
LAST_CHECKPOINT = "_last_checkpoint"

READER_FEATURES = frozenset({"timestampNtz"})
WRITER_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})
"""What asks nothing of a writer that only adds files and refuses tables with column rules."""

LINK_REFUSED = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)

Stamp = tuple[int, int, int]
"""Which file it is, when it was written, and its length: a log that was created again has other
ones."""


class CannotLink(Exception):
    """The file system has no hard links, and nothing was committed."""


class Astray(Exception):
    """The log is not the one that was read, and has to be read again."""


@dataclass(frozen=True, slots=True)
class Tail:
    """A table's log at one version, as one user needs it."""

    folder: Path
    user: str
    version: int
    number: int
    schema: str
    partitions: list[str]
    every: int
    stamp: Stamp

    @classmethod
    def of(cls, place: Location, user: str) -> "tuple[DeltaLog | None, Tail | None]":
        """Read the log with the library; no tail if only the library may commit there."""
        folder = Path(place.path, LOG)
        # The newest version must be the same file before and after: only then was it that log
        # which the library has read, and not one that was put in its place meanwhile.
        before = _newest(folder)
        log = DeltaLog.load(place)
        if log is None or before is None or not _is_plain(log):
            return log, None
        version, stamp = before
        if version != log.version or _stamp(_named(folder, version)) != stamp:
            return log, None
        return log, cls(
            folder, user, version, log.last(user), log.schema, log.partitions, log.every, stamp
        )

    def advanced(self) -> "Tail":
        """Return the tail with what came in since.  Raises Astray if the log must be read again."""
        self.check()
        found = self
        while True:
            while (after := found._next()) is not None:
                found = after
            if _stamp(_named(self.folder, found.version + 2)) is None:
                return found
            if _stamp(_named(self.folder, found.version + 1)) is None:
                raise Astray  # a gap, which is not ours to fill

    def check(self) -> None:
        """Raise Astray if this is not the log any more that was read."""
        if _stamp(_named(self.folder, self.version)) != self.stamp:
            raise Astray

    def committed(self, content: bytes, number: int) -> "Tail | None":
        """Write the next version; None if another committer was faster.

        Raises CannotLink or Astray if nothing was committed, or not to the log that readers see.
        Any OSError leaves open whether it was.
        """
        draft = self.folder / f"_commit_{uuid.uuid4().hex}.json.tmp"  # as the library names its own
        try:
            stamp = _drafted(draft, content)
            # After the draft is there: a process that removes the table now removes the draft, too,
            # and the link fails.
            self.check()
            if not _linked(draft, _named(self.folder, self.version + 1)):
                return None
        finally:
            with suppress(OSError):
                draft.unlink()
        _sync_folder(self.folder)
        if _checkpoint(self.folder) > self.version:
            # Others have come this far while we were paused, and have removed the versions that a
            # checkpoint covers.  Ours filled a gap in what they removed, where no reader looks; or
            # it is in that checkpoint.  The library knows.
            raise Astray
        return replace(self, version=self.version + 1, number=number, stamp=stamp)

    def _next(self) -> "Tail | None":
        """Return the tail one version later; None if there is none."""
        try:
            with _named(self.folder, self.version + 1).open("rb") as file:
                stamp = _stamp_of(os.fstat(file.fileno()))
                content = file.read()
        except FileNotFoundError:
            return None
        number = self.number
        try:
            for action in telling(content):
                if "metaData" in action or "protocol" in action:
                    raise Astray  # the rules may be others
                number = max(number, _number(action, self.user))
        except (ValueError, KeyError, TypeError) as error:
            raise Astray from error
        return replace(self, version=self.version + 1, number=number, stamp=stamp)


def _number(action: dict[str, Any], user: str) -> int:
    mark = action.get("txn")
    return int(mark["version"]) if mark is not None and mark["appId"] == user else -1


def _is_plain(log: DeltaLog) -> bool:
    """Say whether the table asks nothing of its writers but to add files."""
    protocol = log.protocol
    readers = set(protocol.reader_features or ())
    writers = set(protocol.writer_features or ())
    return (
        protocol.min_reader_version in (1, 3)
        and protocol.min_writer_version in (1, 2, 7)
        and readers <= READER_FEATURES
        and writers <= WRITER_FEATURES
        and not log.refusals()
    )


def _named(folder: Path, version: int) -> Path:
    return folder / f"{version:020}.json"


def _newest(folder: Path) -> tuple[int, Stamp] | None:
    """Return the last version that has a file, and its stamp."""
    try:
        names = [n for n in os.listdir(folder) if len(n) == 25 and n.endswith(".json")]  # noqa: PTH208
    except OSError:
        return None
    versions = [int(n[:20]) for n in names if n[:20].isdigit()]
    stamp = _stamp(_named(folder, max(versions))) if versions else None
    return None if stamp is None else (max(versions), stamp)


def _stamp(file: Path) -> Stamp | None:
    try:
        return _stamp_of(file.stat())
    except OSError:
        return None


def _stamp_of(found: os.stat_result) -> Stamp:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _drafted(draft: Path, content: bytes) -> Stamp:
    """Write a draft to the disk."""
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            return _stamp_of(os.fstat(file.fileno()))
    except FileNotFoundError as error:
        raise Astray from error  # the table was removed


def _linked(draft: Path, version: Path) -> bool:
    """Give a draft the name of a version; False if there is such a version."""
    try:
        os.link(draft, version)
    except FileExistsError:
        return False
    except FileNotFoundError as error:
        raise Astray from error
    except OSError as error:
        if error.errno in LINK_REFUSED:
            raise CannotLink(str(error)) from error
        raise
    return True


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # there, folders need none
            raise
    finally:
        os.close(handle)


def _checkpoint(folder: Path) -> int:
    """Return the version of the last checkpoint; -1 if there is none."""
    try:
        return int(msgspec.json.decode((folder / LAST_CHECKPOINT).read_bytes())["version"])
    except FileNotFoundError:
        return -1
    except (ValueError, KeyError, TypeError) as error:
        raise Astray from error
