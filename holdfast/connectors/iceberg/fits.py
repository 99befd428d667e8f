"""Say at once, and readably, why rows cannot go into a table."""

from collections.abc import Sequence

from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.table import IcebergTable
from holdfast.connectors.iceberg.table_properties import refused_wishes
from holdfast.connectors.lake.fit import fit
from holdfast.connectors.lake.partitions import TEXTS
from holdfast.errors import UserError
from holdfast.model.table import Column, Table


def check_table(table: IcebergTable, rows: Table, options: IcebergSinkOptions) -> None:
    """Raise UserError if rows like these cannot be written to a table."""
    about = f"Iceberg cannot write to {options.named}"
    wishes = {**table.properties, **options.write_props}
    wrong = [*table.refusals(), *refused_wishes(wishes, table.location)]
    if wrong:
        raise UserError(
            f"{about}: the table asks for {', '.join(wrong)}, which this sink does not do."
            " Change the table, or write to another one.",
            code="sink.table_refused",
        )
    columns, there = table.columns, table.partitions
    for column in columns:
        if column.name in there and column.type.kind not in TEXTS:
            raise UserError(
                f"{about}: it is partitioned by {column.name}, which is {column.type}; this sink"
                f" partitions by {', '.join(TEXTS)}.",
                code="sink.table_refused",
            )
    keys = options.partitions
    if keys and [k.lower() for k in keys] != [k.lower() for k in there]:
        raise UserError(
            f"{about}: iceberg.table.partition-keys is {', '.join(keys)}, but the table is"
            f" partitioned by {', '.join(there) or 'nothing'}. Correct it, or leave it out.",
            code="sink.partitions_differ",
        )
    if options.case_sensitive:
        _check_case(columns, rows, about)
    fit(columns, rows.columns, about, there)


def _check_case(columns: Sequence[Column], rows: Table, about: str) -> None:
    known = {c.name.lower(): c.name for c in columns}
    differ = [
        f"{known[n.lower()]} arrives as {n}" for n in rows.names if known.get(n.lower(), n) != n
    ]
    if differ:
        raise UserError(
            f"{about}: {'; '.join(differ)}, and case_sensitive is true. Rename columns with the"
            " transform FieldMapper, or leave case_sensitive out.",
            code="sink.schema_differs",
        )
