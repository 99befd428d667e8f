"""A transaction on one state of a table: what we need it to do differently from the library's.

It adds files, and can give a table other columns and partitions under new numbers.
"""

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from holdfast.connectors.iceberg.library import iceberg
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
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
    """What a transaction does differently from the library's."""

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


FIRST_PARTITION = 1000
"""Where Iceberg begins to number what a table is partitioned by."""


def spec_of(schema: "Schema", partitions: Sequence[str], first: int = FIRST_PARTITION) -> Any:
    """Return how a table is partitioned by columns."""
    partitioning, transforms = iceberg("partitioning"), iceberg("transforms")
    fields = [
        partitioning.PartitionField(
            schema.find_field(name).field_id, first + at, transforms.IdentityTransform(), name
        )
        for at, name in enumerate(partitions)
    ]
    return partitioning.PartitionSpec(*fields)


def shape_of(
    metadata: "TableMetadata", schema: "Schema", partitions: Sequence[str],
    properties: Mapping[str, str],
) -> Plain:  # fmt: skip
    """Return a table's new columns, under numbers that it never had, its partitions and
    properties."""
    numbers = itertools.count(metadata.last_column_id + 1)
    fresh = iceberg("schema").assign_fresh_schema_ids(schema, lambda: next(numbers))
    spec = spec_of(fresh, partitions, (metadata.last_partition_id or FIRST_PARTITION - 1) + 1)
    return {
        "schema": fresh.model_dump_json(),
        "spec": spec.model_dump_json(),
        "properties": dict(properties),
    }


def read_shape(shape: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the columns and partitions of a shape.  Raises ValueError where it is none."""
    schema = iceberg("schema").Schema.model_validate_json(str(shape["schema"]))
    return schema, iceberg("partitioning").PartitionSpec.model_validate_json(str(shape["spec"]))


def remake(change: "Transaction", shape: Plain) -> None:
    """Give the table another shape; the catalog refuses it if its columns have changed."""
    assert isinstance(shape, dict)
    update, base = iceberg("table.update"), change.table_metadata
    schema, spec = read_shape(shape)
    number = 1 + max(s.schema_id for s in base.schemas)
    made = [
        update.AddSchemaUpdate(schema_=schema.model_copy(update={"schema_id": number})),
        update.SetCurrentSchemaUpdate(schema_id=-1),
    ]
    if spec.fields or base.spec().fields:
        number = 1 + max(s.spec_id for s in base.partition_specs)
        made += [
            update.AddPartitionSpecUpdate(spec=spec.model_copy(update={"spec_id": number})),
            update.SetDefaultSpecUpdate(spec_id=-1),
        ]
    change._apply(
        tuple(made), (update.AssertCurrentSchemaId(current_schema_id=base.current_schema_id),)
    )
    properties = shape["properties"]
    assert isinstance(properties, dict)
    if properties:
        change.set_properties({name: str(value) for name, value in properties.items()})
