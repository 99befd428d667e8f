"""RegexExtract: the groups of a regular expression become columns."""

import re
from collections.abc import Iterator, Sequence

from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.sql.jvm_functions import GROUP, make_known
from holdfast.connectors.transforms.columns import (
    add_columns,
    check_unique,
    column_text,
    find_columns,
    with_new,
)
from holdfast.model.table import Table
from holdfast.model.types import Type


@options
class RegexExtractOptions:
    """What to look for, where, and the columns for what is found."""

    source_field: str  #: The column to look in; one that is not text is read as text.
    #: A Java regular expression with one group for each new column; its first match counts. A
    #: group that takes no part in the match gives null.
    regex_pattern: str
    output_fields: list[str]  #: The new text columns, one for each group, in order.
    #: What the new columns hold where nothing matches, one for each; null without it.
    default_values: list[str] | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the numbers of groups, columns and defaults."""
        if twice := check_unique(self.output_fields, "'output_fields'"):
            yield "output_fields", f"{twice} Name each column once."
        wanted = len(self.output_fields)
        groups = _count_groups(self.regex_pattern)
        if groups not in (None, wanted):
            yield "output_fields", f"{wanted} columns for {groups} groups. Give as many."
        if self.default_values and len(self.default_values) != wanted:
            given = len(self.default_values)
            yield "default_values", f"{given} defaults for {wanted} columns. Give as many."


class RegexExtract(Transform[RegexExtractOptions]):
    """Writes what each group matched into a column; one that exists is overwritten."""

    name = "RegexExtract"

    def apply(self, rows: Rows) -> Rows:
        """Return the table with a column for each group."""
        from pyspark.sql import functions as F

        asked = self.options
        make_known(rows.frame.sparkSession)
        text = column_text(rows, asked.source_field, self.context.stage)
        pattern, first = F.lit(asked.regex_pattern), F.lit(1)
        matches = text.rlike(asked.regex_pattern)
        defaults: Sequence[str | None] = asked.default_values or [None] * len(asked.output_fields)
        new = {}
        for i, (name, default) in enumerate(zip(asked.output_fields, defaults, strict=True)):
            group = F.call_function(GROUP, text, pattern, first, first, F.lit(i + 1))
            new[name] = F.when(matches, group).otherwise(F.lit(default))
        return add_columns(rows, new)

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        find_columns(table, [self.options.source_field], self.context.stage)
        return with_new(table, {n: Type("string") for n in self.options.output_fields})


def _count_groups(pattern: str) -> int | None:
    """Return how many groups the expression has; None where Java's notation is not Python's."""
    try:
        return re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern)).groups
    except re.error:
        return None
