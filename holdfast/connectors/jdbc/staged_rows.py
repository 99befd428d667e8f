"""What a commit needs to know of staged rows: plain data, kept in checkpoints."""

from dataclasses import asdict, dataclass

import msgspec

from holdfast.connect.sink import Committable
from holdfast.connectors.committables import Whole
from holdfast.connectors.jdbc.database import Name
from holdfast.model.tree import Plain

VERSION = 1

ORDER = "holdfast_order"
"""Column of a staging table: which of two changes of a key is the later one."""

PUT = "holdfast_put"
"""Column of a staging table: 1 where a row is there after its change, 0 where it is gone."""

CHUNK = "holdfast_chunk"
"""Column of a staging table: which Spark task has loaded the row."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Staged rows of one slice, and where they go."""

    staged: str
    """The staging table; its columns are c0, c1 and so on."""

    chunks: tuple[Whole, ...]
    table: Name
    columns: tuple[str, ...]
    keys: tuple[str, ...] = ()
    deletes: bool = False
    query: str = ""
    """The INSERT that a user wrote, instead of columns and keys."""

    width: Whole = 0
    """How many columns were staged."""

    apart: bool = False
    """Whether each chunk is a table of its own next to the staging table, which is empty then."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that have the rows."""
        return (
            tuple(chunk_table(self.staged, c) for c in self.chunks)
            if self.apart
            else (self.staged,)
        )

    @property
    def shape(self) -> tuple[object, ...]:
        """What rows must have in common to be written by one statement."""
        return (self.table, self.columns, self.keys, self.deletes, self.query, self.width)

    def to_plain(self) -> Plain:
        """Return this as a checkpoint keeps it."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


def chunk_table(staged: str, chunk: int) -> str:
    """Return the name of a chunk that is a table of its own."""
    return f"{staged}_{chunk:d}"


def content_of(committable: Committable) -> StagedRows:
    """Read what `to_plain` has made, in this process: what others have sent is checked first."""
    return msgspec.convert(committable.content, StagedRows)
