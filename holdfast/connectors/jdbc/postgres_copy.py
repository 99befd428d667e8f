"""Load Arrow batches into a table of PostgreSQL: by COPY, as text or in the server's own format.

The server takes its own format at half the cost of text, and the library that writes it works in C.
It writes a column as the type that Arrow has, so it is used only where the table has that type; and
its connections ask the server for all types first, which a handful of rows is not worth.
"""

import io
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from holdfast.connectors.jdbc.database import Loader, Session
from holdfast.connectors.library import load_library

NATURAL: dict[str, tuple[pa.DataType, ...]] = {
    "bigint": (pa.int64(),),
    "integer": (pa.int32(),),
    "smallint": (pa.int16(), pa.int8()),
    "real": (pa.float32(),),
    "double precision": (pa.float64(),),
    "boolean": (pa.bool_(),),
    "date": (pa.date32(),),
    "timestamp": (pa.timestamp("us"),),
    "timestamp without time zone": (pa.timestamp("us"),),
    "timestamptz": (pa.timestamp("us", "UTC"),),
    "timestamp with time zone": (pa.timestamp("us", "UTC"),),
    "text": (pa.string(),),
    "varchar": (pa.string(),),
    "character varying": (pa.string(),),
    "character": (pa.string(),),
}
"""What the columns of a table are in Arrow, where the server reads them as they are."""

KEEP_SYNC = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)
"""Staged rows of a durable checkpoint must survive a crash of the server."""

APPEND = "adbc.ingest.mode.append"

_SIZE = re.compile(r"\([\d, ]*\)")


class Copy(Loader):
    """One COPY of CSV.  Arrow quotes all text and leaves nulls bare, which is how COPY reads it."""

    def __init__(self, session: Session, statement: str) -> None:
        self._database = session.database
        self._entered = session.connection.cursor().copy(statement)
        with self._database.explained():
            self._copy = self._entered.__enter__()

    def load(self, batch: pa.RecordBatch) -> int:
        """Send rows."""
        text = io.BytesIO()
        arrow_csv.write_csv(batch, text, arrow_csv.WriteOptions(include_header=False))
        with self._database.explained():
            self._copy.write(text.getbuffer())
        return text.tell()

    def finish(self) -> None:
        """Tell the server that this was all; it says now what it could not read."""
        with self._database.explained():
            self._entered.__exit__(None, None, None)


def is_natural(schema: pa.Schema, types: Sequence[str]) -> bool:
    """Say whether columns of the database have just the types that Arrow has."""
    return all(_fits(kind, name) for kind, name in zip(schema.types, types, strict=True))


def peeked(
    batches: Iterator[pa.RecordBatch],
) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
    """Return the first two batches, and all of them."""
    first = list(itertools.islice(batches, 2))
    return first, itertools.chain(first, batches)


class Binary:
    """One transaction with one COPY in the server's own format.

    Not by way of the library's DBAPI, which imports pandas.
    """

    def __init__(self, conninfo: str) -> None:
        self._adbc = load_library("adbc_driver_manager", "Jdbc", "postgres")
        self._driver = load_library("adbc_driver_postgresql", "Jdbc", "postgres")
        self._conninfo = conninfo
        self._sent = 0
        self._raised: BaseException | None = None

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The errors that the library raises."""
        return (self._adbc.Error,)

    def load(self, table: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
        """Load rows and commit; return how many bytes they have in Arrow."""
        reader = pa.RecordBatchReader.from_batches(schema, self._noted(batches))
        with (
            self._driver.connect(self._conninfo) as database,
            self._adbc.AdbcConnection(database) as connection,
        ):
            connection.set_autocommit(False)
            self._run(connection, KEEP_SYNC)
            self._ingest(connection, table, reader)
            connection.commit()
        return self._sent

    def _run(self, connection: Any, query: str) -> None:
        with self._adbc.AdbcStatement(connection) as statement:
            statement.set_sql_query(query)
            found, _ = statement.execute_query()
            pa.RecordBatchReader._import_from_c(found.address).read_all()

    def _ingest(self, connection: Any, table: str, reader: pa.RecordBatchReader) -> None:
        named = self._adbc.StatementOptions
        with self._adbc.AdbcStatement(connection) as statement:
            statement.set_options(
                **{named.INGEST_TARGET_TABLE.value: table, named.INGEST_MODE.value: APPEND}
            )
            statement.bind_stream(reader)
            try:
                statement.execute_update()
            except self._adbc.Error:
                if self._raised is None:
                    raise
                raise self._raised from None  # the library tells only its text

    def _noted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                self._sent += batch.nbytes
                yield batch
        except BaseException as error:
            self._raised = error
            raise


def _fits(kind: Any, name: str) -> bool:
    bare = _SIZE.sub("", name)
    if bare == "numeric":
        return pa.types.is_decimal128(kind)
    return kind in NATURAL.get(bare, ())
