"""Compare Sql's functions with SeaTunnel's rules: `make sql-parity`."""

import argparse
import json
import math
import random
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.spark import session
from tests.parity import chance, planted
from tests.parity.ours import Ours
from tests.parity.table import HERE, Line, differences, lines, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = HERE.parents[1] / "docs" / "sql-functions.md"
CLOSE = 4
"""How many of a double's last places Java's mathematics may differ in."""

MATHEMATICS = {
    "sin", "cos", "tan", "tanh", "atan", "atan2", "exp", "radians", "cosh", "sinh", "acos", "asin",
    "sqrt", "ln", "log", "log10", "cot", "power",
}  # fmt: skip


def alike(line: Line, ours: str) -> bool:
    """Say whether two values are one; Java's mathematics may differ in the last places."""
    if line.wanted == ours:
        return True
    if line.rule not in MATHEMATICS or (line.wanted + ours).count("double ") != 2:
        return False
    a, b = (json.loads(said.partition(" ")[2]) for said in (line.wanted, ours))
    if not (isinstance(a, float) and isinstance(b, float)):
        return False
    return abs(a - b) <= CLOSE * math.ulp(a)


def judged(table: Sequence[Line], found: dict[str, str]) -> list[str]:
    """Return what is wrong: a difference without a decision, a decision without a difference."""
    known, decided = differences(), set(re.findall(r'id="(d-[\w-]+)"', PAGE.read_text()))
    wrong = []
    for line in table:
        ours, difference = found[line.sql], known.get(line.sql)
        same = alike(line, ours)
        about = f"{line.sql} [{line.group}, {line.rule}]: SeaTunnel gives {line.wanted}"
        if difference is None and not same:
            wrong.append(f"{about}, we give {ours}. No decision says so.")
        elif difference is not None and same:
            wrong.append(f"{about}, and so do we: {difference.decision} is not needed any more.")
        elif difference is not None and difference.ours != ours:
            wrong.append(f"{about}, we give {ours}, and {difference.decision} {difference.ours}.")
        if difference is not None and difference.decision.lower() not in decided:
            wrong.append(f"{line.sql}: {PAGE.name} has no decision {difference.decision}.")
    unknown = known.keys() - {line.sql for line in table}
    return [*wrong, *(f"{sql}: a difference of no expression in the table." for sql in unknown)]


def check(spark: "SparkSession", seed: int, rows: int) -> int:
    """Compare the table and random rows; return how many differences nobody decided."""
    table, begun = lines(), time.monotonic()
    wrong = judged(table, Ours(spark).values(table))
    took = time.monotonic() - begun
    print(f"{len(table)} expressions, {len(differences())} differ by decision ({took:.0f} s)")
    values, differing = chance.compared(spark, seed, rows)
    print(f"{values} values of {rows} random rows, seed {seed}: {len(differing)} differ")
    for sentence in (*wrong, *differing[:40]):
        print(f"  {sentence}")
    return len(wrong) + len(differing)


def propose(spark: "SparkSession") -> int:
    """Write all differences there are, those without a decision marked with a question mark."""
    table, known = lines(), differences()
    found = Ours(spark).values(table)
    rows = []
    for line in table:
        if not alike(line, found[line.sql]):
            old = known.get(line.sql)
            rows.append((line.sql, old.decision if old else "?", found[line.sql]))
            print(f"{line.sql}: {line.wanted} there, {found[line.sql]} here")
    write("differences.tsv", "expression\tdecision\tours", rows)
    print(f"{len(rows)} differences")
    return sum(decision == "?" for _, decision, _ in rows)


def main() -> int:
    """Return 0 where every difference is decided and, if asked, every planted bug is caught."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--planted", action="store_true", help="plant bugs; each must be caught")
    parser.add_argument("--propose", action="store_true", help="write differences.tsv anew")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        starting = session.begin({}, 2, Path(folder, "spark.log"))
        try:
            spark = starting.session()
            if asked.propose:
                return propose(spark)
            if asked.planted:
                return planted.check(spark, judged)
            return min(check(spark, asked.seed, asked.rows), 1)
        finally:
            session.stop(starting)


if __name__ == "__main__":
    sys.exit(main())
