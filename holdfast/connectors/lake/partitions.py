"""Sort rows into folders by the values of columns, and keep those columns in the files.

Spark sorts rows into folders by texts made from the values, which tell null from nothing.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.model.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEXTS = {
    # The text of a partition value by its type; days and instants as numbers since 1970.
    "string": "{}", "boolean": "CAST({} AS STRING)", "tinyint": "CAST({} AS STRING)",
    "smallint": "CAST({} AS STRING)", "int": "CAST({} AS STRING)",
    "bigint": "CAST({} AS STRING)", "decimal": "CAST({} AS STRING)",
    "date": "CAST(unix_date({}) AS STRING)", "timestamp_tz": "CAST(unix_micros({}) AS STRING)",
}  # fmt: skip


def partition_names(partitions: Sequence[str]) -> list[str]:
    """Return the names of the columns that Spark sorts rows into folders by."""
    return [f"__holdfast_p{number}" for number in range(len(partitions))]


def keyed(frame: "DataFrame", partitions: Sequence[str], kinds: Mapping[str, str]) -> "DataFrame":
    """Return rows with a text for each partition column; `kinds` has their types."""
    texts = []
    for key, name in zip(partitions, partition_names(partitions), strict=True):
        value = quote(key)
        text = TEXTS[kinds[key]].format(value)
        # Never null, and Spark can see it: it would else rewrite the column, and sort rows anew.
        texts.append(f"coalesce(concat('v', {text}), 'n') AS {name}")
    return frame.selectExpr("*", *texts) if texts else frame


def value_texts(partition: Sequence[str | None]) -> list[str | None]:
    """Return the texts of the values that folders were named by; None is null."""
    return [None if text == "n" else (text or "")[1:] for text in partition]
