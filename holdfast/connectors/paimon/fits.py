"""Say at once, and readably, why rows cannot go into a table."""

from collections.abc import Iterator, Sequence

from holdfast.connectors.lake.fit import fit
from holdfast.connectors.paimon.bucket import HASHED, bucket_keys
from holdfast.connectors.paimon.options import PaimonSinkOptions
from holdfast.connectors.paimon.refusals import SEQUENCE, option_refusals
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.table import PaimonTable
from holdfast.connectors.paimon.types import kind_of, nested_lengths
from holdfast.errors import UserError
from holdfast.model.table import Table

PARTITIONS = ("STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DATE")
"""Types to partition by: readers work out a folder's name from a value, and for others they
differ in how."""

UNORDERED = ("FLOAT", "DOUBLE", "a type with parts")


def check_table(table: PaimonTable, rows: Table, options: PaimonSinkOptions) -> None:
    """Raise UserError if rows like these cannot be written to a table."""
    about = f"Paimon cannot write to {options.url}"
    schema = table.schema
    check_schema(schema, about)
    _same(options.partitions, schema.partitions, "paimon.table.partition-keys", about)
    _same(options.keys, schema.keys, "paimon.table.primary-keys", about)
    fit(schema.columns(about), rows.columns, about, schema.partitions)


def check_schema(schema: PaimonSchema, about: str) -> None:
    """Raise UserError if this sink cannot write to a table like this one."""
    wrong = [
        *option_refusals(schema.options, schema.keys, schema.partitions),
        *_partition_refusals(schema),
        *_key_refusals(schema),
        *(
            f"column {name} has texts or bytes of limited length inside; this sink keeps limits of"
            " whole columns alone."
            for name, kind in schema.types.items()
            if nested_lengths(kind)
        ),
    ]
    if wrong:
        raise UserError(f"{about}: {' '.join(wrong)}", code="sink.table_refused")


def _partition_refusals(schema: PaimonSchema) -> Iterator[str]:
    for name in schema.partitions:
        kind = _kind(schema.types[name])
        if kind not in PARTITIONS:
            yield (
                f"it is partitioned by {name}, which is {kind}; this sink partitions by"
                f" {', '.join(PARTITIONS)}."
            )


def _key_refusals(schema: PaimonSchema) -> Iterator[str]:
    """Yield what is wrong with the key of a table."""
    kinds = {name: _kind(kind) for name, kind in schema.types.items()}
    if schema.keys and not schema.own_keys:
        yield "the primary key has only partition columns: each partition would have one row."
    for name in schema.own_keys:
        if kinds[name] in UNORDERED:
            yield f"{name} is in the primary key and is {kinds[name]}, which has no sure order."
    for name in bucket_keys(schema) if schema.keys and schema.buckets > 1 else ():
        if kinds.get(name) not in HASHED:
            yield (
                f"{name} decides on the bucket of a row and is {kinds.get(name, 'no column')};"
                f" with more than one bucket it may be {', '.join(HASHED)}."
            )
    fields = schema.options.get(SEQUENCE, "").split(",") if schema.keys else ()
    for name in fields:
        if name.strip() not in kinds:
            yield f"{SEQUENCE} is {name.strip()}, which is no column of the table."


def _kind(described: object) -> str:
    return kind_of(described).name if isinstance(described, str) else "a type with parts"


def _same(said: Sequence[str], there: Sequence[str], option: str, about: str) -> None:
    if said and [k.lower() for k in said] != [k.lower() for k in there]:
        raise UserError(
            f"{about}: {option} is {', '.join(said)}, but the table has"
            f" {', '.join(there) or 'none'}. Correct it, or leave it out.",
            code="sink.partitions_differ" if "partition" in option else "sink.keys_differ",
        )
