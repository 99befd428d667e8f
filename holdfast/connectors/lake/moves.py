"""Staged files on their way to where a table has them.  Any number of committers may move them."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from holdfast.connectors.lake.location import Location
from holdfast.errors import UserError


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
    """Move files to where the table has them, unless somebody has; return those that are gone."""
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


def lost(sink: str, place: Location, file: Moving) -> UserError:
    """Return the error for a file that is gone."""
    return UserError(
        f"{sink} cannot commit to {place.url}: the staged file {file.staged} is gone. Somebody has"
        " moved or removed it; bring it back, or start the job anew.",
        code="sink.staged_missing",
    )
