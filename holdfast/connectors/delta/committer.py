"""Bring staged files into a Delta table: each commit counts once, whichever process repeats it.

Files are first moved from the staging folder to where the table's files are, where no reader looks
for them until the log names them.  So a file that is still in a staging folder is not committed,
and may be removed.  Files that were moved and never named are left to the table's VACUUM.

Between commits the sink keeps the tails of its tables' logs (`Tails`), and commits on top of them.
"""

import time
from collections.abc import Sequence

from holdfast.connect.sink import CommitId
from holdfast.connectors.delta.library import RETRIES, DeltaLog, same_columns, shorten, unknown
from holdfast.connectors.delta.log_lines import written
from holdfast.connectors.delta.log_tail import Astray, CannotLink, Tail
from holdfast.connectors.delta.staged_files import DeltaFile, DeltaStaged
from holdfast.connectors.delta.types import from_delta
from holdfast.connectors.lake.commits import TRIES, first_gone, lost, move, outrun
from holdfast.connectors.lake.location import Location, no_table
from holdfast.connectors.lake.prepare import TableOrder
from holdfast.connectors.save_modes import data_exists
from holdfast.errors import UserError
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
        """Forget a table, so that it is read again next time."""
        self._kept.pop(key, None)

    def leave_to_library(self, place: Location) -> None:
        """Commit to this table only with the library from now on."""
        self._only_library.add(place.path)


class TailLog:
    """The state of one table as its tail has it, and a commit on top of it."""

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
        """Write the next free version, unless this number is committed already."""
        tail = self._tail
        for _ in range(RETRIES):
            made = tail.committed(content, identifier.number)
            if made is not None:
                return made
            # Only files and numbers of others came in, or this raises: columns are what they were.
            tail = tail.advanced()
            if tail.number >= identifier.number:
                return None
        return None


def commit(
    identifier: CommitId,
    place: Location,
    staged: Sequence[DeltaStaged],
    tails: Tails,
    order: TableOrder | None = None,
) -> None:
    """Make what was staged for one table visible, and do before what the save modes say.

    A repeated identifier changes nothing, nor do save modes that their incarnation has applied.
    """
    files = [file for one in staged for file in one.files]
    for _ in range(TRIES):
        log = _loaded(place) if order else tails.latest(place, identifier.user)
        if log.last(identifier.user) >= identifier.number:
            return
        due = order if order and log.last(order.mark) < 0 else None
        _check_columns(log, staged, due)
        _bring(place, identifier, files, tails)
        if _added(log, identifier, files, due):
            for one in staged:
                place.remove(one.folder)
            return
    raise outrun("Delta", place.url)


def check(
    identifier: CommitId, place: Location, staged: Sequence[DeltaStaged], tails: Tails
) -> None:
    """Raise UserError if the commit is yet to come, and files it needs are gone."""
    files = [file for one in staged for file in one.files]
    missing = first_gone(place, files)
    if missing and not _is_made(identifier, place, tails):
        raise lost("Delta", place, missing)


def _bring(place: Location, identifier: CommitId, files: Sequence[DeltaFile], tails: Tails) -> None:
    """Move files to where the table has them, unless somebody has."""
    missing = move(place, files)
    if missing and not _is_made(identifier, place, tails):
        raise lost("Delta", place, missing[0])


def _is_made(identifier: CommitId, place: Location, tails: Tails) -> bool:
    return tails.latest(place, identifier.user).last(identifier.user) >= identifier.number


def _loaded(place: Location) -> DeltaLog:
    log = DeltaLog.load(place)
    if log is None:
        raise no_table("Delta", place)
    return log


def _added(
    log: DeltaLog | TailLog,
    identifier: CommitId,
    files: Sequence[DeltaFile],
    order: TableOrder | None,
) -> bool:
    if isinstance(log, TailLog):
        return log.add(identifier, files)
    if order and order.mode == "empty" and not log.is_empty:
        raise data_exists("Delta", log.place.url)
    return log.add(identifier, files, order)


def _check_columns(
    log: DeltaLog | TailLog, staged: Sequence[DeltaStaged], order: TableOrder | None
) -> None:
    schema = str(order.shape) if order and order.shape else log.schema
    for one in staged:
        if not same_columns(schema, one.columns) or log.partitions != one.partitions:
            raise UserError(
                f"Delta cannot commit to {log.place.url}: the table's columns or partitions were"
                " changed after rows were staged for it. Change them back, or start the job again.",
                code="sink.schema_changed",
            )
