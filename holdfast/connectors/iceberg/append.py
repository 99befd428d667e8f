"""The library's way of adding files, with what we need it to do otherwise."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from holdfast.connectors.iceberg.library import iceberg

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update.snapshot import _MergeAppendFiles

MERGE_COUNT, MERGE_COUNT_DEFAULT = "commit.manifest.min-count-to-merge", "20"
MERGE_BYTES, MERGE_BYTES_DEFAULT = "commit.manifest.target-size-bytes", str(512 * 1024)
MERGE = "commit.manifest-merge.enabled"
"""Merging is Python's work: more often than Iceberg's default, and of less at a time."""


def change_of(table: "Table") -> "Transaction":
    """Return a transaction on top of this state of a table, and of no other."""
    made: Transaction = _change_class()(table)
    return made


def append_to(change: "Transaction", io: "FileIO", facts: Mapping[str, str]) -> "_MergeAppendFiles":
    """Return what adds files, and merges manifests unless the table forbids it."""
    made: _MergeAppendFiles = iceberg("table.update.snapshot")._MergeAppendFiles(
        operation=iceberg("table.snapshots").Operation.APPEND,
        transaction=change,
        io=io,
        snapshot_properties=dict(facts),
    )
    said = change.table_metadata.properties
    made._merge_enabled = said.get(MERGE, "true").lower() == "true"
    made._min_count_to_merge = int(said.get(MERGE_COUNT, MERGE_COUNT_DEFAULT))
    made._target_size_bytes = int(said.get(MERGE_BYTES, MERGE_BYTES_DEFAULT))
    return made


class _OnOneState:
    """What a transaction does otherwise than the library's."""

    _table: "Table"
    _updates: Any
    _seen: "tuple[object, object, TableMetadata] | None" = None

    def _rebuild_snapshot_updates(self) -> None:
        """Refuse what the library does when the table has moved on: add to the new state."""
        raise iceberg("exceptions").ValidationException("the table has moved on")

    @property
    def table_metadata(self) -> "TableMetadata":
        """The table with what was changed so far.  The library works it out each time."""
        base, updates = self._table.metadata, self._updates
        if self._seen is None or self._seen[0] is not base or self._seen[1] is not updates:
            made = iceberg("table.update").update_table_metadata(base, updates)
            self._seen = base, updates, made
        return self._seen[2]


@cache
def _change_class() -> Any:
    return type("Change", (_OnOneState, iceberg("table").Transaction), {})
