"""Replace: put one text in the place of another."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import (
    add_columns,
    column_text,
    find_columns,
    with_new,
)
from holdfast.model.table import Column, Table
from holdfast.model.types import Type

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

REST = "holdfastRest"


@options
class ReplaceOptions:
    """What to replace, where, and by what."""

    replace_field: str  #: The column to change; one that is not text becomes text.
    pattern: str  #: What to look for: a text, or a Java regular expression with `is_regex`.
    #: What to put there. With `is_regex`, $1 and ${name} stand for groups of the match.
    replacement: str
    is_regex: bool = False  #: Whether `pattern` is a regular expression.
    replace_first: bool = False  #: Replace only the first match; counts only with `is_regex`.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the pattern."""
        if not self.pattern:
            yield "pattern", "'pattern' is empty. Say what to look for."


class Replace(Transform[ReplaceOptions]):
    """Replaces every match of a pattern in one column, or the first."""

    name = "Replace"

    def apply(self, rows: Rows) -> Rows:
        """Return the table with the column changed in its place."""
        name = self.options.replace_field
        text = column_text(rows, name, self.context.stage)
        return add_columns(rows, {name: self._replaced(text)}, [self._changed(rows.table)])

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        return with_new(table, {self.options.replace_field: self._changed(table)})

    def _changed(self, table: Table) -> Column:
        name = self.options.replace_field
        column = find_columns(table, [name], self.context.stage)[name]
        return replace(column, type=Type("string"))

    def _replaced(self, text: "Expression") -> "Expression":
        from pyspark.sql import functions as F

        asked = self.options
        if not asked.is_regex:
            return F.replace(text, F.lit(asked.pattern), F.lit(asked.replacement))
        if not asked.replace_first:
            return F.regexp_replace(text, asked.pattern, asked.replacement)
        return _replace_first(text, asked.pattern, asked.replacement)


def _replace_first(text: "Expression", pattern: str, replacement: str) -> "Expression":
    r"""Return the text with the first match replaced, as Java's `replaceFirst` does.

    Spark replaces every match, so the match takes all the rest of the text along, in a
    group after the user's own.  `\G` is where the last match ended: it keeps a pattern that can be
    empty from matching once more at the end.
    """
    from pyspark.sql import functions as F

    whole = rf"(?:\A|(?!\G))(?:{pattern})(?<{REST}>(?s:.*))\z"
    # An escaped character is no reference, and $01 is group 1 to Java.
    parts = re.sub(r"(\\.)|\$0(?!\d)", lambda m: m[1] or "\0", replacement).split("\0")
    if len(parts) == 1:
        return F.regexp_replace(text, whole, f"{replacement}${{{REST}}}")
    # $0 would now be the rest as well, so the match itself is put in, as plain text.
    match = F.regexp_replace(F.regexp_extract(text, pattern, 0), r"([\\$])", r"\\$1")
    put = [F.lit(parts[0])]
    for part in parts[1:]:
        put += [match, F.lit(part)]
    return F.regexp_replace(text, F.lit(whole), F.concat(*put, F.lit(f"${{{REST}}}")))
