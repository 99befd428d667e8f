"""The options of a Spark format, passed on as they are."""

import re
from dataclasses import dataclass

from holdfast.connect.checks import CheckReport
from holdfast.connect.placeholders import resolve
from holdfast.model.secret import Secret
from holdfast.model.table import Table
from holdfast.model.tree import Block, Node, Plain, Scalar

SECRET_NAMES = re.compile(r"pass|secret|token|credential|key|auth|sas|signature", re.IGNORECASE)
WHERE = (
    "url", "path", "dbtable", "query", "table", "database", "collection", "subscribe", "topic",
)  # fmt: skip
"""Options of formats that name a place, in small letters."""


@dataclass(frozen=True, slots=True)
class SparkWriterSettings:
    """A format's own options.  Those whose names sound like credentials are never shown."""

    plain: dict[str, str]
    secret: dict[str, Secret]

    type_text = "block"

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "SparkWriterSettings":
        """Read the block; nested keys are joined with dots."""
        if not isinstance(node, Block):
            raise ValueError("the options of a format are a block { ... }")
        plain: dict[str, str] = {}
        secret: dict[str, Secret] = {}
        for key, entry in node.leaves():
            if not isinstance(entry.node, Scalar):
                report.error(entry.place, f"{where}.{key} is not a single value.")
            elif SECRET_NAMES.search(key):
                secret[key] = Secret(entry.node.text)
            else:
                plain[key] = entry.node.text
        return cls(plain, secret)

    def identity(self) -> Plain:
        """Return those that say what is read or written, and not how."""
        return {key: text for key, text in sorted(self.plain.items()) if key.lower() in WHERE}

    def for_spark(self, table: Table | None = None) -> dict[str, str]:
        """Return all of them as Spark takes them, with a table's placeholders filled in."""
        plain = resolve(self.plain, table) if table else self.plain
        return plain | {key: value.reveal() for key, value in self.secret.items()}
