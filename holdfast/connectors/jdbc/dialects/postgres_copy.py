"""Load Arrow batches into a table of PostgreSQL: by COPY, as text or in the server's own format.

The server takes its own format at half the cost of text, and a library writes it at a tenth.  It
writes a column as the type that Arrow has, so it is used only where the table has that type.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from holdfast.connect.library import load_library
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


class Copy(Loader):
    """One COPY, of whatever a subclass makes of batches."""

    form = ""

    def __init__(self, session: Session, loading: Loading) -> None:
        self._session = session
        # Only a table that was made in this transaction can be frozen.
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


class Text(Copy):
    """Lines of CSV.  Arrow quotes all text and leaves nulls bare, which is how COPY reads it."""

    form = "csv"

    def pieces(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes | memoryview]:
        """Yield lines."""
        for batch in batches:
            text = io.BytesIO()
            arrow_csv.write_csv(batch, text, arrow_csv.WriteOptions(include_header=False))
            yield text.getbuffer()


class Binary(Copy):
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
