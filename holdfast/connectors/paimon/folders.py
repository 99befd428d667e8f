"""Where the files of a partition are: readers work it out from its values by themselves."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from holdfast.connectors.lake.partitions import escaped
from holdfast.connectors.paimon.binary_row import decode
from holdfast.connectors.paimon.schema import PaimonSchema

DEFAULT_NAME, DEFAULT_NAME_DEFAULT = "partition.default-name", "__DEFAULT_PARTITION__"
LEGACY_NAME = "partition.legacy-name"


def partition_folder(values: Sequence[Any], schema: PaimonSchema) -> str:
    """Return the folder of a partition, with a slash behind it; nothing if there are none."""
    options = schema.options
    by_number = options.get(LEGACY_NAME, "true").lower() == "true"
    nameless = options.get(DEFAULT_NAME, DEFAULT_NAME_DEFAULT)
    pieces = []
    for key, value in zip(schema.partitions, values, strict=True):
        if isinstance(value, date) and by_number:
            text = str((value - date(1970, 1, 1)).days)
        else:
            text = shown(value) or ""
        pieces.append(f"{escaped(key)}={escaped(text) if text.strip() else nameless}/")
    return "".join(pieces)


def bucket_folder(entry: Mapping[str, Any], schema: PaimonSchema) -> str:
    """Return the folder of a file that a manifest names."""
    values = decode(entry["_PARTITION"], schema.types_of(schema.partitions))
    return f"{partition_folder(values, schema)}bucket-{entry['_BUCKET']}"


def shown(value: Any) -> str | None:
    """Return a partition value as people write it."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
