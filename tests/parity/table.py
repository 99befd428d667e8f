"""The table as files: one for each group, a line for each expression.

An expression, the rule it comes from, the type of its value and the value as JSON; `fails` where
the job stops.  `differences.tsv` has the expressions of which our value is another by decision.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.parity.cases import Case, all_cases
from tests.parity.java import J

HERE = Path(__file__).parent
FAILS = "fails"


@dataclass(frozen=True)
class Line:
    """One expression of the table."""

    group: str
    sql: str
    rule: str
    wanted: str


@dataclass(frozen=True)
class Difference:
    """An expression that gives another value here, and the decision that says why."""

    sql: str
    decision: str
    ours: str


def shown(kind: str, value: Any) -> str:
    """Return a value with its type, in one way whoever made it."""
    return f"{kind} {json.dumps(_plain(value), ensure_ascii=False)}"


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}" if value else "0"
    if isinstance(value, float):
        # Zero has no sign here: Java keeps one in some functions and not in others.
        return (value or 0.0) if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


def shown_case(case: Case) -> str:
    """Return what a rule gives, as the table has it."""
    return FAILS if case.value is None else shown_j(case.value)


def shown_j(j: J) -> str:
    """Return a value of Java's as the table has it."""
    return shown(j.kind, j.value)


def lines() -> list[Line]:
    """Return the table as it is on disk."""
    made = []
    for file in sorted(HERE.glob("*.tsv")):
        if file.name != "differences.tsv":
            made += [Line(file.stem, *split) for split in _rows(file)]
    return made


def differences() -> dict[str, Difference]:
    """Return the differences that are decided, by their expressions."""
    return {row[0]: Difference(*row) for row in _rows(HERE / "differences.tsv")}


def _rows(file: Path) -> list[list[str]]:
    return [line.split("\t") for line in file.read_text().splitlines()[1:]]


def write(file: str, heading: str, rows: Iterable[Iterable[str]]) -> None:
    """Write one file of the table."""
    text = "\n".join("\t".join(row) for row in rows)
    Path(HERE, file).write_text(f"{heading}\n{text}\n")


def main() -> None:
    """Write the table anew from the rules."""
    cases = all_cases()
    for group in sorted({case.group for case in cases}):
        rows = ((c.sql, c.rule, shown_case(c)) for c in cases if c.group == group)
        write(f"{group}.tsv", "expression\trule\tvalue", rows)


if __name__ == "__main__":
    main()
