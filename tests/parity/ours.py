"""What Holdfast gives for the expressions: one Spark job for each few hundred of them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows
from holdfast.connectors.sql.transform import Sql, SqlOptions
from holdfast.errors import UserError
from holdfast.model.job import Mode
from tests.parity.row import row_sql
from tests.parity.table import FAILS, Line, shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 150
"""Expressions in one query: more make methods that Java does not compile."""

CONTEXT = PluginContext("1", "parity", "Transform[0]-Sql", Mode.BATCH)
ZONE = "Asia/Shanghai"
"""The instants of the row have the offset of this zone."""


def selected(rows: Rows, expressions: Sequence[str]) -> Rows:
    """Return the rows of one query."""
    items = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(expressions))
    return Sql(SqlOptions(query=f"SELECT {items} FROM dual", time_zone=ZONE), CONTEXT).apply(rows)


class Ours:
    """Asks Holdfast, and remembers."""

    def __init__(self, spark: "SparkSession") -> None:
        self.rows = Rows.of("row", spark.sql(row_sql()))

    def values(self, table: Sequence[Line]) -> dict[str, str]:
        """Return what expressions give, as the table shows it; those that fail say so."""
        found: dict[str, str] = {}
        alone = [line.sql for line in table if line.wanted == FAILS]
        others = [line.sql for line in table if line.wanted != FAILS]
        groups = [others[at : at + AT_ONCE] for at in range(0, len(others), AT_ONCE)]
        for group in (*groups, *([sql] for sql in alone)):
            found |= self._some(group)
        return found

    def _some(self, expressions: list[str]) -> dict[str, str]:
        """Ask for some in one job; where that fails, for half of them at a time."""
        from pyspark.errors import PySparkException

        try:
            made = selected(self.rows, expressions)
            (row,) = made.frame.collect()
        except (UserError, PySparkException):
            if len(expressions) == 1:
                return {expressions[0]: FAILS}
            half = len(expressions) // 2
            return self._some(expressions[:half]) | self._some(expressions[half:])
        kinds = [column.type.kind for column in made.table.columns]
        return {sql: shown(k, v) for sql, k, v in zip(expressions, kinds, row, strict=True)}


def over(frame: "DataFrame", expressions: Sequence[str]) -> Iterator[tuple[list[str], list[Any]]]:
    """Yield the types and the rows of expressions over a frame, some expressions at a time."""
    for at in range(0, len(expressions), AT_ONCE):
        made = selected(Rows.of("rows", frame), expressions[at : at + AT_ONCE])
        kinds = [column.type.kind for column in made.table.columns]
        yield kinds, made.frame.collect()
