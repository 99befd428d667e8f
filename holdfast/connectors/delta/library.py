"""A Delta table's log, through the library: create, look, and add files under a number.

The fence is inside the transaction.  A commit reads the table's state, looks there whether this
user has a number as high, and adds its files and its number on top of exactly that state; the
library refuses it if a commit of the same user came in between, and we look again.
"""

import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.connect.library import load_library
from holdfast.connect.sink import CommitId
from holdfast.connectors.delta.log_lines import facts
from holdfast.connectors.delta.staged_files import DeltaFile
from holdfast.connectors.delta.types import from_delta, refusals
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.prepare import TableOrder
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable, UserError
from holdfast.model.table import Column

log = logging.getLogger("holdfast")

CHECKPOINT_EVERY = 10
"""After so many versions the state is written down whole, so that no reader goes through a long
log."""

NEVER_READ = ("is not supported", "catalog-managed")
"""What the library says where it never reads a table."""

INTERVAL = "delta.checkpointInterval"
RETRIES = 20


class DeltaLog:
    """The state of one table as it was read, and changes on top of it."""

    def __init__(self, place: Location, table: Any) -> None:
        self.place = place
        self._table = table

    @classmethod
    def load(cls, place: Location) -> "DeltaLog | None":
        """Read the latest state; None if there is no table."""
        library = _library()
        try:
            table = library.DeltaTable(place.plain_url, storage_options=place.storage_options)
        except library.exceptions.TableNotFoundError:
            return None
        except (library.exceptions.DeltaError, OSError) as error:
            raise _unreadable(place, error) from error
        return cls(place, table)

    @classmethod
    def create(
        cls, place: Location, schema: str, partitions: Sequence[str], properties: Mapping[str, str]
    ) -> "DeltaLog":
        """Create the table unless it exists."""
        library = _library()
        try:
            library.DeltaTable.create(
                place.plain_url,
                library.Schema.from_json(schema),
                mode="ignore",
                partition_by=list(partitions),
                configuration={INTERVAL: str(CHECKPOINT_EVERY), **properties},
                storage_options=place.storage_options,
            )
        except (library.exceptions.DeltaError, OSError) as error:
            found = cls.load(place)
            if found is None:
                raise UserError(
                    f"Delta cannot create the table {place.url}: {error}."
                    " Check who may write there, and the table's properties.",
                    code="sink.create_failed",
                ) from error
            return found
        found = cls.load(place)
        assert found is not None, "a table that was just created is there"
        return found

    @property
    def version(self) -> int:
        """The version that was read."""
        return int(self._table.version())

    @property
    def protocol(self) -> Any:
        """What readers and writers of the table must know, as the library says."""
        return self._table.protocol()

    @property
    def every(self) -> int:
        """After how many versions the state is written down whole."""
        return int(self._table.metadata().configuration.get(INTERVAL, CHECKPOINT_EVERY))

    @property
    def columns(self) -> list[Column]:
        """The columns of the table."""
        return from_delta(self.schema)

    @property
    def schema(self) -> str:
        """The columns as Delta's JSON."""
        return str(self._table.schema().to_json())

    @property
    def partitions(self) -> list[str]:
        """The columns the table is partitioned by."""
        return list(self._table.metadata().partition_columns)

    @property
    def properties(self) -> dict[str, str]:
        """The properties of the table."""
        return dict(self._table.metadata().configuration)

    @property
    def is_empty(self) -> bool:
        """Whether the table has no files."""
        return not self._table.file_uris()

    def refusals(self) -> list[str]:
        """Return what this table asks of its writers that we cannot do."""
        return refusals(self.schema, self.properties, self.protocol)

    def last(self, user: str) -> int:
        """Return the highest number that this user has committed; -1 for none."""
        try:
            found = self._table.transaction_version(user)  # reads the log, which others may shorten
        except (_library().exceptions.DeltaError, OSError) as error:
            raise _unreadable(self.place, error) from error
        return -1 if found is None else int(found)

    def add(
        self, identifier: CommitId, files: Sequence[DeltaFile], order: TableOrder | None = None
    ) -> bool:
        """Add files and the number on top of this state; False if the state has moved on.

        Under an order, what is there goes in the same version, and the columns become others.
        """
        library = _library()
        at = self.version
        now_ms = int(time.time() * 1000)
        marks = [library.Transaction(identifier.user, identifier.number, now_ms)]
        schema, keeps = self._table.schema(), order is None or order.mode == "empty"
        if order is not None:
            marks.append(library.Transaction(order.mark, 0, now_ms))
            schema = library.Schema.from_json(order.shape) if order.shape else schema
        try:
            self._table.create_write_transaction(
                [_action(f, now_ms) for f in files],
                mode="append" if keeps else "overwrite",
                schema=schema,
                partition_by=self.partitions,
                commit_properties=library.CommitProperties(
                    custom_metadata=facts(identifier),
                    app_transactions=marks,
                    max_commit_retries=RETRIES,
                ),
                # The library would list the whole log after every commit; we do it now and then.
                post_commithook_properties=library.PostCommitHookProperties(
                    create_checkpoint=False, cleanup_expired_logs=False
                ),
            )
        except library.exceptions.CommitFailedError as error:
            found = self.load(self.place)
            if found is not None and found.version == at:
                raise UserError(
                    f"Delta cannot commit to {self.place.url}: {error}. No other writer has changed"
                    " the table, so trying again does not help. Change the table, or write to"
                    " another one.",
                    code="sink.commit_refused",
                ) from error
            return False
        except (library.exceptions.DeltaError, OSError) as error:
            raise unknown(identifier, self.place, error) from error
        self._write_down(at)
        return True

    def shorten(self) -> None:
        """Write the state down whole, and remove the log that has expired."""
        self._table.create_checkpoint()
        self._table.cleanup_metadata()

    def _write_down(self, before: int) -> None:
        """Write the state down whole now and then, and remove the log that has expired.

        The commit is complete by now, so an error here is only logged.
        """
        every = self.every
        with _errors_logged(self.place):
            self._table.update_incremental()
            if self.version // every != before // every:
                self.shorten()


def shorten(place: Location) -> None:
    """Write the state of a table down whole; an error is only logged."""
    with _errors_logged(place):
        found = DeltaLog.load(place)
        if found is not None:
            found.shorten()


@contextmanager
def _errors_logged(place: Location) -> Iterator[None]:
    """Log an error, and continue."""
    try:
        yield
    except (_library().exceptions.DeltaError, OSError, Unavailable) as error:
        log.warning("The log of %s was not shortened: %s", place.url, error)


def unknown(identifier: CommitId, place: Location, error: Exception) -> OutcomeUnknown:
    """Return the error for a commit whose outcome is not known."""
    return OutcomeUnknown(
        f"Delta cannot tell whether commit {identifier.number} to {place.url} was made: {error}."
        " It looks again.",
        code="sink.commit_unknown",
    )


def _unreadable(place: Location, error: Exception) -> HoldfastError:
    if any(said in str(error) for said in NEVER_READ):
        return UserError(
            f"Delta cannot write to {place.url}: the library that reads its log says: {error}."
            " Change the table, or write to another one.",
            code="sink.table_refused",
        )
    return Unavailable(
        f"Delta cannot read the table {place.url}: {error}.", code="sink.table_unreadable"
    )


def check_library() -> None:
    """Raise UserError if the library is not installed."""
    _library()


def _library() -> Any:
    return load_library("deltalake", "Delta", "delta")


def _action(file: DeltaFile, now_ms: int) -> Any:
    made = load_library("deltalake.transaction", "Delta", "delta")
    return made.AddAction(
        path=file.final,
        size=file.bytes,
        partition_values=file.partition,
        modification_time=now_ms,
        data_change=True,
        stats=file.stats,
    )


def same_columns(schema: str, stored: str) -> bool:
    """Say whether columns that were staged are still the table's, as far as they go."""
    there = {f["name"]: f["type"] for f in json.loads(schema)["fields"]}
    return all(there.get(n) == t for n, t in json.loads(stored).items())
