"""Sort rows into folders by the values of columns, and keep those columns in the files.

Spark sorts rows into folders by texts of the values, which distinguish null from an empty text.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.connect.literals import text_literal
from holdfast.connectors.lake.limits import NUL, refusing
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


TEXT_MAX = 220
"""The most bytes of a text with what is escaped in a folder's name: disks bear 255."""

ESCAPED = "\"#%'*/:=?\\{}[]^\x7f"
CONTROLS = "".join(map(chr, range(1, 32)))
"""What Spark writes with three characters in a folder's name."""


YEARS = {
    "date": "DATE'0001-01-01' AND DATE'9999-12-31'",
    "timestamp": "TIMESTAMP_NTZ'0001-01-01 00:00:00' AND TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
    "timestamp_tz": "TIMESTAMP'0001-01-01 00:00:00Z' AND TIMESTAMP'9999-12-31 23:59:59.999999Z'",
}
"""The days and moments that the readers of tables have years for."""


def partition_names(partitions: Sequence[str]) -> list[str]:
    """Return the names of the columns that Spark sorts rows into folders by."""
    return [f"__holdfast_p{number}" for number in range(len(partitions))]


def keyed(
    frame: "DataFrame", partitions: Sequence[str], kinds: Mapping[str, str], about: str,
    texts: Mapping[str, str] = TEXTS, *, empty: bool = True,
) -> "DataFrame":  # fmt: skip
    """Return rows with a text for each partition column; `kinds` has their types.

    A value that no folder can be named by is refused while rows are written, and so is the empty
    text where the table would take it for null (`empty` is false).
    """
    found = []
    for key, name in zip(partitions, partition_names(partitions), strict=True):
        value = quote(key)
        text = texts[kinds[key]].format(value)
        cases = _refusals(value, kinds[key], f"{about}: the table is partitioned by {key},", empty)
        text = f"CASE {' '.join(cases)} ELSE {text} END" if cases else text
        # Never null, and Spark can see it: it would else rewrite the column, and sort rows again.
        found.append(f"coalesce(concat('v', {text}), 'n') AS {name}")
    return frame.selectExpr("*", *found) if found else frame


def _refusals(value: str, kind: str, about: str, empty: bool) -> list[str]:
    """Return the cases of a value that is refused, in Spark SQL."""
    said = f"{about} and a value of it"
    if kind in YEARS:
        text = f"CAST({value} AS STRING)"
        return [
            refusing(
                f"{value} NOT BETWEEN {YEARS[kind]}", text, f"{said} is in no year from 1 to 9999"
            )
        ]
    if kind != "string":
        return []
    size = f"octet_length({value})"
    escaped = (
        f"length({value}) - length(translate({value}, {text_literal(ESCAPED + CONTROLS)}, ''))"
    )
    long = f"{size} > {TEXT_MAX // 3} AND {size} + 2 * ({escaped}) > {TEXT_MAX}"
    cases = [
        refusing(f"contains({value}, {NUL})", value, f"{said} has a NUL character"),
        refusing(long, value, f"{said} is too long for the name of a folder"),
    ]
    if not empty:
        null = f"{said} is the empty text, which readers of such a table take for null"
        cases.append(refusing(f"{value} = ''", value, null))
    return cases


def value_texts(partition: Sequence[str]) -> list[str | None]:
    """Return the texts of the values that folders were named by; None is null."""
    return [None if text == "n" else text[1:] for text in partition]


def escaped(text: str) -> str:
    """Return a text as Spark, Hive and Paimon write it in a folder's name."""
    return "".join(f"%{ord(c):02X}" if c in ESCAPED + CONTROLS else c for c in text)
