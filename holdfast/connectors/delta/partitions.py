"""What a Delta table's log says of the partition of a file: a text for each value.

Spark sorts rows into folders by texts that tell null from nothing, and have days and instants as
numbers; the log has them as its protocol wants them.  Instants have their zone, so that readers in
every zone find the same ones.
"""

from datetime import date, datetime, timedelta
from decimal import Decimal

from holdfast.connectors.lake.partitions import TEXTS as OTHERS_TEXTS

TEXTS = {
    **OTHERS_TEXTS, "float": "CAST({} AS STRING)", "double": "CAST({} AS STRING)",
    "timestamp": "CAST({} AS STRING)",  # as a number, it would depend on the session's zone
}  # fmt: skip
"""Types to partition by, and the texts that rows are sorted by."""

EPOCH = datetime(1970, 1, 1)


def log_value(text: str | None, kind: str) -> str | None:
    """Return a partition value as the log has it."""
    if text is None:
        return None
    match kind:
        case "decimal":
            return format(Decimal(text), "f")  # without an exponent
        case "timestamp":
            return datetime.fromisoformat(text).isoformat(sep=" ", timespec="microseconds")
        case "date":
            return (date(1970, 1, 1) + timedelta(days=int(text))).isoformat()
        case "timestamp_tz":
            found = EPOCH + timedelta(microseconds=int(text))
            return found.isoformat(timespec="microseconds") + "Z"
    return text
