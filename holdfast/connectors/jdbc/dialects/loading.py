"""Load Arrow batches into staging tables: PostgreSQL by COPY, MySQL by INSERTs of many rows.

PostgreSQL takes its own format at half the cost of text, and a library writes it at a tenth.  That
writes a column as the type that Arrow has, so it is used only where the table has that type.

For MySQL, literals are built column by column inside Arrow.  The session has NO_BACKSLASH_ESCAPES
and talks utf8mb4, in which no other character has the byte of a quote: doubling quotes is enough.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.connect.library import load_library
from holdfast.connectors.jdbc.columns import HEX
from holdfast.connectors.jdbc.database import Loader, Loading, Session

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

_SIZE = re.compile(r"\([\d, ]*\)")


class PostgresCopy(Loader):
    """One COPY, of whatever a subclass makes of batches."""

    form = ""

    def __init__(self, session: Session, loading: Loading) -> None:
        self._session = session
        # Only a table that this transaction has created can be frozen.
        how = f"FORMAT {self.form}{', FREEZE' if loading.apart else ''}"
        self._statement = (
            f"COPY {loading.table} ({', '.join(loading.columns)}) FROM STDIN WITH ({how})"
        )

    def load(self, batches: Iterator[pa.RecordBatch]) -> int:
        """Send rows; at the end the server says what it could not read."""
        sent, cursor = 0, self._session.connection.cursor()
        with self._session.database.explained(), cursor.copy(self._statement) as copy:
            for piece in self.pieces(batches):
                copy.write(piece)
                sent += len(piece)
        return sent

    def pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """Yield what is sent."""
        raise NotImplementedError


class TextCopy(PostgresCopy):
    """Lines of CSV.  Arrow quotes all text and leaves nulls bare, which is how COPY reads it."""

    form = "csv"

    def pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """Yield lines."""
        import pyarrow.csv as arrow_csv  # late: tasks that do not send text need not load it

        for batch in batches:
            text = io.BytesIO()
            arrow_csv.write_csv(batch, text, arrow_csv.WriteOptions(include_header=False))
            yield text.getbuffer()


class BinaryCopy(PostgresCopy):
    """The server's own format."""

    form = "binary"

    def __init__(self, session: Session, loading: Loading, schema: pa.Schema) -> None:
        super().__init__(session, loading)
        library = load_library("pgpq", "Jdbc", "postgres")
        self._encoder = library.ArrowToPostgresBinaryEncoder(schema)

    def pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """Yield a head, rows and a tail."""
        yield self._encoder.write_header()
        for batch in batches:
            yield self._encoder.write_batch(batch)
        yield self._encoder.finish()


def is_natural(schema: pa.Schema, types: Sequence[str]) -> bool:
    """Say whether columns of the database have just the types that Arrow has."""
    return all(_fits(kind, name) for kind, name in zip(schema.types, types, strict=True))


def _fits(kind: Any, name: str) -> bool:
    bare = _SIZE.sub("", name)
    if bare == "numeric":
        return pa.types.is_decimal128(kind)
    return kind in NATURAL.get(bare, ())


STATEMENT_BYTES = 4 << 20
"""The most bytes of one INSERT, unless a single row has more."""


class MySqlInserts(Loader):
    """INSERTs of many rows."""

    def __init__(self, session: Session, table: str, columns: Sequence[str], rows: int) -> None:
        self._session = session
        self._rows = rows
        self._head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ".encode()
        ((packet,),) = session.run("SELECT @@session.max_allowed_packet")
        self._bytes = min(STATEMENT_BYTES, int(packet) // 2)

    def load(self, batches: Iterator[pa.RecordBatch]) -> int:
        """Send rows."""
        sent = 0
        for values in (group for batch in batches for group in self._groups(_rows(batch))):
            statement = self._head + b"),(".join(values).join((b"(", b")"))
            with self._session.database.explained():
                self._session.connection.query(statement)
            sent += len(statement)
        return sent

    def _groups(self, rows: list[bytes]) -> Iterator[list[bytes]]:
        start, size = 0, 0
        for at, row in enumerate(rows):
            if at > start and (at - start >= self._rows or size + len(row) > self._bytes):
                yield rows[start:at]
                start, size = at, 0
            size += len(row) + 3
        if start < len(rows):
            yield rows[start:]


def _rows(batch: pa.RecordBatch) -> list[bytes]:
    """Return each row as a list of SQL literals."""
    columns = [_literals(batch.column(i), batch.schema.field(i)) for i in range(batch.num_columns)]
    joined: Any = pc.binary_join_element_wise(*columns, ",")
    return [bytes(row) for row in joined.cast(pa.binary()).to_pylist()]


def _literals(values: Any, field: Any) -> Any:
    """Return a column as SQL literals."""
    kind = values.type
    if pa.types.is_boolean(kind):
        text: Any = pc.cast(pc.cast(values, pa.int8()), pa.string())
    elif pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        text = pc.cast(values, pa.string())
    else:
        text = _quoted(values, field)
    return pc.fill_null(text, "NULL")


def _quoted(values: Any, field: Any) -> Any:
    text = as_text(values)
    head = "x'" if field.name.startswith(HEX) else "'"
    escaped = pc.replace_substring(text, "'", "''")
    return pc.binary_join_element_wise(head, escaped, "'", "")


def as_text(values: Any) -> Any:
    """Return a column as text that MySQL reads; instants in UTC."""
    if pa.types.is_timestamp(values.type) and values.type.tz:
        values = pc.local_timestamp(pc.cast(values, pa.timestamp("us", "UTC")))
    return values if pa.types.is_string(values.type) else pc.cast(values, pa.string())
