"""Make a table anew inside a transaction: other columns and partitions, under new numbers."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.connectors.iceberg.library import iceberg
from holdfast.model.tree import Plain

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Transaction
    from pyiceberg.table.metadata import TableMetadata

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


def remake(change: "Transaction", shape: Plain) -> None:
    """Give the table another shape; the catalog refuses it if its columns have changed."""
    assert isinstance(shape, dict)
    update, base = iceberg("table.update"), change.table_metadata
    schema = iceberg("schema").Schema.model_validate_json(str(shape["schema"]))
    spec = iceberg("partitioning").PartitionSpec.model_validate_json(str(shape["spec"]))
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
