"""What the properties of a table say about its files: where they are, and what is kept of columns.

What is not kept is refused when the table is looked at, not ignored.
"""

import re
from collections.abc import Iterator, Mapping

from holdfast.connectors.iceberg.library import iceberg
from holdfast.connectors.iceberg.locations import place_of
from holdfast.errors import UserError

FORMAT = "write.format.default"
DATA_PATHS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
"""Where files shall be; the first one that is set counts."""

HASHED, NAMED = "write.object-storage.enabled", "write.object-storage.partitioned-paths"
CODE = ("write.location-provider.impl", "write.py-location-provider.impl")
METRICS = "write.metadata.metrics."
METRICS_DEFAULT = "truncate(16)"
CODEC = "write.parquet.compression-codec"
CODECS = {
    # Iceberg's name: Spark's
    "zstd": "zstd",
    "gzip": "gzip",
    "snappy": "snappy",
    "lz4": "lz4_raw",
    "uncompressed": "none",
}

_MODE = re.compile(r"none|counts|full|truncate\(([1-9]\d*)\)")


def refused_wishes(properties: Mapping[str, str], location: str | None = None) -> Iterator[str]:
    """Yield what properties ask for and this sink does not do; `location` is a table's."""
    form = properties.get(FORMAT, "parquet")
    if form.lower() != "parquet":
        yield (
            f"files of {form} ({FORMAT}; with {FORMAT} = parquet in iceberg.table.write-props it"
            " gets Parquet files as well)"
        )
    for name in CODE:
        if name in properties:
            yield f"files where other code says ({name} = {properties[name]})"
    for name in DATA_PATHS:
        said = properties.get(name)
        if said and (location is None or _below(said, location) is None):
            yield f"files outside its own folder ({name} = {said})"
    for name, said in properties.items():
        mode = name == f"{METRICS}default" or name.startswith(f"{METRICS}column.")
        if mode and not _MODE.fullmatch(said.strip().lower()):
            yield f"metrics of a kind that there is not ({name} = {said})"


def metrics_of(properties: Mapping[str, str], column: str) -> tuple[str, int | None]:
    """Return what manifests tell of a column, and how long its bounds may be; None: any length."""
    default = properties.get(f"{METRICS}default", METRICS_DEFAULT)
    found = properties.get(f"{METRICS}column.{column}", default).strip().lower()
    length = _MODE.fullmatch(found)
    return found, int(length[1]) if length and length[1] else None


def final_path(properties: Mapping[str, str], location: str, folder: str, name: str) -> str:
    """Return where a file will be, below the table; `folder` says what is in it, to people."""
    said = next((properties[p] for p in DATA_PATHS if properties.get(p)), None)
    data = "data" if said is None else _below(said, location) or "data"
    within = f"{folder}/{name}" if folder else name
    if properties.get(HASHED, "false").lower() != "true":
        return f"{data}/{within}"
    named = properties.get(NAMED, "true").lower() == "true"
    # The library's own way to spread files over an object store, given no other property.
    provider = iceberg("table.locations").ObjectStoreLocationProvider("table", {NAMED: str(named)})
    path = provider.new_data_location(within if named else name)
    return f"{data}/{path.removeprefix('table/data/')}"


def _below(path: str, location: str) -> str | None:
    """Return a folder as a path below a table; None if it is elsewhere."""
    try:
        there, table = place_of(path).path, place_of(location).path
    except UserError:
        return None
    return there[len(table) + 1 :].strip("/") or None if there.startswith(f"{table}/") else None
