"""The tails that a sink keeps between commits, and commits on top of them."""

import time
from collections.abc import Sequence

from holdfast.connect.sink import CommitId
from holdfast.connectors.delta.library import TRIES, DeltaLog, shorten, unknown
from holdfast.connectors.delta.log_lines import written
from holdfast.connectors.delta.log_tail import Astray, CannotLink, Tail
from holdfast.connectors.delta.staged_files import DeltaFile
from holdfast.connectors.delta.types import from_delta
from holdfast.connectors.lake.location import Location, no_table
from holdfast.model.table import Column

KEPT_MOST = 1000
"""Tables of one sink that are remembered, some kilobytes each."""


class Tails:
    """What is known of the logs of a sink's tables.  Others may commit to them at any moment."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Tail] = {}
        self._only_library: set[str] = set()

    def latest(self, place: Location, user: str) -> "DeltaLog | TailLog":
        """Return the state of a table as it is now.  Raises UserError if there is no table."""
        found = self.find(place, user)
        if found is None:
            raise no_table("Delta", place)
        return found

    def find(self, place: Location, user: str = "") -> "DeltaLog | TailLog | None":
        """Return the state of a table as it is now; None if there is no table.

        Without a user nothing can be committed on top of it.
        """
        if not place.is_local or place.path in self._only_library:
            return DeltaLog.load(place)
        key = place.path, user
        tail = self._kept.get(key)
        if tail is not None:
            try:
                return TailLog(self, place, self.keep(key, tail.advanced()))
            except (Astray, OSError):
                self.forget(key)
        log, tail = Tail.of(place, user)
        if tail is None:
            return log
        return TailLog(self, place, self.keep(key, tail))

    def keep(self, key: tuple[str, str], tail: Tail) -> Tail:
        """Remember a tail in the place of a former one."""
        self.forget(key)
        self._kept[key] = tail
        for oldest in list(self._kept)[:-KEPT_MOST]:
            self.forget(oldest)
        return tail

    def forget(self, key: tuple[str, str]) -> None:
        """Read the table anew next time."""
        self._kept.pop(key, None)

    def leave_to_library(self, place: Location) -> None:
        """Commit to this table only with the library from now on."""
        self._only_library.add(place.path)


class TailLog:
    """The state of one table as its tail tells it, and a commit on top of it."""

    def __init__(self, kept: Tails, place: Location, tail: Tail) -> None:
        self.place = place
        self._kept = kept
        self._tail = tail

    @property
    def schema(self) -> str:
        """The columns as Delta's JSON."""
        return self._tail.schema

    @property
    def columns(self) -> list[Column]:
        """The columns of the table."""
        return from_delta(self.schema)

    def refusals(self) -> list[str]:
        """Return what this table asks of its writers that we cannot do: else there is no tail."""
        return []

    @property
    def partitions(self) -> list[str]:
        """The columns the table is partitioned by."""
        return self._tail.partitions

    def last(self, user: str) -> int:
        """Return the highest number that this user has committed; -1 for none."""
        assert user == self._tail.user, "a tail is for one user"
        return self._tail.number

    def add(self, identifier: CommitId, files: Sequence[DeltaFile]) -> bool:
        """Add files and the number on top of this state; False if the state has moved on."""
        assert identifier.user == self._tail.user, "a tail is for one user"
        key = self.place.path, identifier.user
        content = written(identifier, files, self.partitions, int(time.time() * 1000))
        try:
            made = self._committed(identifier, content)
        except CannotLink:
            self._kept.leave_to_library(self.place)
            return False
        except Astray:
            self._kept.forget(key)
            return False
        except OSError as error:
            self._kept.forget(key)
            raise unknown(identifier, self.place, error) from error
        if made is None:
            return False
        self._kept.keep(key, made)
        if made.version // made.every != self._tail.version // made.every:
            shorten(self.place)
        return True

    def _committed(self, identifier: CommitId, content: bytes) -> Tail | None:
        """Make the next version that is free, as long as nobody has committed this number."""
        tail = self._tail
        for _ in range(TRIES):
            made = tail.committed(content, identifier.number)
            if made is not None:
                return made
            # Only files and numbers of others came in, or this raises: columns are what they were.
            tail = tail.advanced()
            if tail.number >= identifier.number:
                return None
        return None
