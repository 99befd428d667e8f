"""What the commits of all lake sinks share: moving staged files, tags of savepoints, lost races.

Any number of committers may move the same files.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from holdfast.connect.sink import CommitId
from holdfast.connectors.lake.location import Location
from holdfast.errors import Unavailable, UserError

TRIES = 10
"""How often a commit is tried on top of a newer state, before the engine takes over."""


class Moving(Protocol):
    """A file with its two places below the table's folder."""

    @property
    def staged(self) -> str:
        """Where it was staged."""

    @property
    def final(self) -> str:
        """Where the table has it."""


F = TypeVar("F", bound=Moving)


def move(place: Location, files: Sequence[F]) -> list[F]:
    """Move files to where the table has them, unless another has; return those that are gone."""
    for file, here in zip(files, place.has(f.staged for f in files), strict=True):
        if here:
            with suppress(FileNotFoundError):  # another committer is moving it, too
                place.move(file.staged, file.final)
    there = place.has(f.final for f in files)
    return [f for f, here in zip(files, there, strict=True) if not here]


def first_gone(place: Location, files: Sequence[F]) -> F | None:
    """Return a file that is in neither of its places."""
    here = place.has(f.staged for f in files)
    gone = [f for f, found in zip(files, here, strict=True) if not found]
    moved = place.has(f.final for f in gone) if gone else []
    return next((f for f, found in zip(gone, moved, strict=True) if not found), None)


def outrun(sink: str, where: str) -> Unavailable:
    """Return the error for a commit that others were faster than each time."""
    return Unavailable(
        f"{sink} cannot commit to {where}: lost {TRIES} commit races in a row.",
        code="sink.commit_conflicts",
    )


def lost(sink: str, place: Location, file: Moving) -> UserError:
    """Return the error for a file that is gone."""
    return UserError(
        f"{sink} cannot commit to {place.url}: the staged file {file.staged} is gone. It was"
        " moved or removed; bring it back, or start the job again.",
        code="sink.staged_missing",
    )


def tag_of(identifier: CommitId, job: str) -> str:
    """Return the tag of a savepoint.

    It has the job's incarnation and the checkpoint in it, so that a job that starts again, and
    numbers its checkpoints from 1 again, never takes another's.
    """
    rest = identifier.user.removeprefix(f"{job}.").split(".")
    return "-".join(("savepoint", job, *rest[:2], str(identifier.number)))
