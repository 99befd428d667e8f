"""Options of a table that this sink would not keep: it refuses them rather than ignore them."""

from collections.abc import Iterator, Mapping, Sequence

from holdfast.connectors.paimon.expire import RETAIN_TIME, duration_ms

ONLY = {
    # option: (the values that are kept, why others are not)
    "type": (("table",), "it is another sort of table"),
    "branch": (("main",), "commits go to the main branch"),
    "row-tracking.enabled": (("false",), "rows are not numbered"),
    "data-evolution.enabled": (("false",), "rows are not numbered"),
    "deletion-vectors.enabled": (
        ("false",), "rows would not show until another engine compacts the table"
    ),
    "changelog-producer": (("none",), "no changelog is written beside the rows"),
    "merge-engine": (("deduplicate",), "for each key the last row counts"),
    "tag.automatic-creation": (("none",), "no tags are made by time"),
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
