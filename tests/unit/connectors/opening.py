"""Open tables as a job does that starts: the save modes are applied by its first commit."""

import itertools
from collections.abc import Sequence
from typing import Any

from holdfast.connect.sink import CommitId, Opening, Sink
from holdfast.model.table import Table

LIVES = itertools.count()


def open_tables(sink: Sink[Any], tables: Sequence[Table]) -> None:
    """Prepare tables and commit what the save modes ask for, as another life each time."""
    life = f"open.{next(LIVES)}"
    made = sink.prepare(tables, Opening(life))
    sink.commit(CommitId(f"{life}.1.s", 1), made)
