"""Load Arrow batches into a table of MySQL.

Literals are made column by column inside Arrow.  The session has NO_BACKSLASH_ESCAPES and talks
utf8mb4, in which no other character has the byte of a quote: doubling quotes is all it takes.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from holdfast.connectors.jdbc.columns import HEX
from holdfast.connectors.jdbc.database import Loader, Session

STATEMENT_BYTES = 4 << 20
"""The most bytes of one INSERT, unless a single row has more."""


class Inserts(Loader):
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
