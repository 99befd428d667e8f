"""Tables that this sink cannot write to: it refuses options and types that it would not keep."""

from collections.abc import Iterator, Mapping, Sequence

from holdfast.connectors.paimon.bucket import HASHED, bucket_keys
from holdfast.connectors.paimon.expire import RETAIN_TIME, duration_ms
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.types import kind_of, nested_lengths
from holdfast.errors import UserError

ONLY = {
    # option: (the values that are kept, why others are not)
    "type": (("table",), "it is another sort of table"),
    "branch": (("main",), "commits go to the main branch"),
    "row-tracking.enabled": (("false",), "rows are not numbered"),
    "data-evolution.enabled": (("false",), "rows are not numbered"),
    "deletion-vectors.enabled": (
        ("false",), "rows would not show until another engine compacts the table"
    ),
    "changelog-producer": (("none",), "no changelog is written with the rows"),
    "merge-engine": (("deduplicate",), "for each key the last row counts"),
    "tag.automatic-creation": (("none",), "no tags are set by time"),
    "local-merge-buffer-size": ((), "rows of one key are merged where they are written"),
    "manifest.format": (("avro",), "manifests are read and written as Avro alone"),
    "data-file.path-directory": ((), "files are kept where Paimon has them by default"),
    "data-file.external-paths": ((), "files are kept inside the table"),
    "partition.expiration-time": ((), "partitions do not expire"),
    "rowkind.field": ((), "the kind of a row is that of the changelog it comes in"),
    "sequence.field.sort-order": (("ascending",), "the greatest value is the last one"),
    "bucket-function.type": (("default",), "rows are put into buckets as Paimon does by default"),
    "pk-clustering-override": (("false",), "rows are kept in the order of their key"),
}  # fmt: skip
BUCKET = "bucket"
SEQUENCE = "sequence.field"
PARTITIONS = ("STRING", "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DATE")
"""Types to partition by: readers work out a folder's name from a value, and for others they
differ in how."""

UNORDERED = ("FLOAT", "DOUBLE", "a type with parts")


def option_refusals(
    options: Mapping[str, str], keys: Sequence[str], partitions: Sequence[str]
) -> Iterator[str]:
    """Yield why a table with these options, keys and partitions cannot be written to."""
    for name, (kept, why) in ONLY.items():
        said = options.get(name)
        if said is not None and said.lower() not in kept:
            yield f"{name} = {said} is not possible: {why}. Leave it out."
    yield from _time_refusals(options)
    yield from _bucket_refusals(options, keys)
    if not keys:
        return
    if not options.get(SEQUENCE):
        yield (
            f"a table with a primary key needs {SEQUENCE}, a column that grows with each change of"
            " a row, such as the time of the change. Rows are staged before those of the"
            " checkpoint before them are committed, so that only their own values tell which of"
            " two rows of a key is the later one."
        )
    outside = [name for name in partitions if name not in keys]
    if outside:
        yield (
            f"the primary key ({', '.join(keys)}) must have the partition columns in it, and has"
            f" not {', '.join(outside)}: this sink does not look in other partitions for a key."
        )


def _bucket_refusals(options: Mapping[str, str], keys: Sequence[str]) -> Iterator[str]:
    said = options.get(BUCKET, "-1")
    try:
        buckets = int(said)
    except ValueError:
        yield f"{BUCKET} = {said} is not a number."
        return
    if keys and buckets < 1:
        yield (
            f"a table with a primary key needs {BUCKET}, the number of buckets in each partition:"
            " this sink writes to a fixed number of them. Give 1 for each GB of a partition."
        )
    elif not keys and buckets != -1:
        yield (
            f"{BUCKET} = {said} is not possible without a primary key: rows are added to files of"
            " any size. Leave it out."
        )


def _time_refusals(options: Mapping[str, str]) -> Iterator[str]:
    said = options.get(RETAIN_TIME)
    try:
        duration_ms(said or "1 h")
    except ValueError as error:
        yield f"{RETAIN_TIME}: {error}."


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
