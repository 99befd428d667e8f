"""DataValidator: rows that break a rule stop the job or are left out."""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal

from holdfast.connect.options import option, options
from holdfast.connect.rejects import LeftOut
from holdfast.connect.rows import Rows
from holdfast.connect.transform import Transform
from holdfast.connectors.sql.casts import as_text
from holdfast.connectors.sql.values import SqlValue
from holdfast.connectors.transforms.columns import find_columns
from holdfast.errors import UserError
from holdfast.model.table import Column, Table
from holdfast.model.types import quote

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

RuleType = Literal["NOT_NULL", "RANGE", "LENGTH", "REGEX"]
Bound = tuple["Expression | None", bool]
"""A bound, if there is one, and whether it is itself allowed."""

NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@options
class Rule:
    """One thing that must hold.  All but NOT_NULL hold for null."""

    rule_type: RuleType | None = None  #: What is checked.
    min_value: str | None = None  #: RANGE: the least value.
    max_value: str | None = None  #: RANGE: the greatest value.
    min_inclusive: bool = True  #: RANGE: whether the least value itself is allowed.
    max_inclusive: bool = True  #: RANGE: whether the greatest value itself is allowed.
    min_length: int | None = None  #: LENGTH: the least length of a text, bytes or array.
    max_length: int | None = None  #: LENGTH: the greatest length.
    exact_length: int | None = None  #: LENGTH: the only length.
    pattern: str | None = None  #: REGEX: a Java regular expression that must match the whole text.
    case_sensitive: bool = True  #: REGEX: whether upper and lower case differ.
    custom_message: str | None = None  #: What the error says, in place of Holdfast's words.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what the rule lacks."""
        if self.rule_type == "REGEX" and not self.pattern:
            yield "pattern", "a REGEX rule needs a 'pattern'."
        if self.rule_type == "RANGE" and self.min_value is None and self.max_value is None:
            yield "min_value", "a RANGE rule needs 'min_value', 'max_value' or both."
        lengths = (self.min_length, self.max_length, self.exact_length)
        if self.rule_type == "LENGTH" and lengths == (None, None, None):
            yield "min_length", "a LENGTH rule needs 'min_length', 'max_length' or 'exact_length'."


@options
class ValidatedField(Rule):
    """A column and what must hold of it: a rule right here, or several under `rules`."""

    field_name: str  #: The column to check.
    rules: list[Rule] = option([])  #: Several rules for the column.

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the column's rules."""
        yield from super().problems()
        if any(rule.rule_type is None for rule in self.all) or not self.all:
            yield "rule_type", "a rule needs a 'rule_type': NOT_NULL, RANGE, LENGTH or REGEX."

    @property
    def all(self) -> list[Rule]:
        """The column's rules."""
        return [*([self] if self.rule_type else []), *self.rules]


@options
class DataValidatorOptions:
    """What must hold, and what happens to rows of which it does not."""

    field_rules: list[ValidatedField]  #: The columns to check and the rules for each.
    #: What to do with a row that breaks a rule: FAIL stops the job, SKIP leaves it out and counts
    #: it as rejected.
    row_error_handle_way: Literal["FAIL", "SKIP"] = "FAIL"


class DataValidator(Transform[DataValidatorOptions]):
    """Checks each row.  The table itself stays as it is."""

    name = "DataValidator"

    def apply(self, rows: Rows) -> Rows:
        """Return the rows that keep every rule."""
        from pyspark.sql import functions as F

        frame, left_out = rows.frame, None
        if self.options.row_error_handle_way == "SKIP":
            left_out = LeftOut(frame.sparkSession)
        for field, column in self._ruled(rows.table):
            for rule in field.all:
                broken = F.coalesce(_broken(column, rule), F.lit(False))
                if left_out:
                    frame = frame.where(left_out.stays(broken))
                else:
                    # A filter, not a column: no one can prune it away.
                    stop = F.raise_error(self._message(rows, column, rule)).cast("boolean")
                    frame = frame.where(F.when(broken, stop).otherwise(True))
        return rows.with_frame(frame, left_out)

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it is; its rules must fit it."""
        for field, column in self._ruled(table):
            if column.type.kind in NUMBERS:
                for rule in field.all:
                    _ = [_number(column, t) for t in (rule.min_value, rule.max_value) if t]
        return table

    def _ruled(self, table: Table) -> list[tuple[ValidatedField, Column]]:
        """Return the rules of each field with its column."""
        rules = self.options.field_rules
        found = find_columns(table, [field.field_name for field in rules], self.context.stage)
        return [(field, found[field.field_name]) for field in rules]

    def _message(self, rows: Rows, column: Column, rule: Rule) -> "Expression":
        from pyspark.sql import functions as F

        value = F.coalesce(_text(column).cast("string"), F.lit("null"))
        said = rule.custom_message or f"it breaks the rule {_rule_text(rule)}"
        about = f"{self.context.stage}: column '{column.name}' of table {rows.table.path}, value '"
        return F.concat(F.lit(about), F.substring(value, 1, 60), F.lit(f"': {said}."))


def _broken(column: Column, rule: Rule) -> "Expression":
    """Return whether a row breaks the rule; null where it has no value."""
    from pyspark.sql import functions as F

    value = F.col(quote(column.name))
    match rule.rule_type:
        case "NOT_NULL":
            return value.isNull()
        case "REGEX":
            flags = "" if rule.case_sensitive else "(?i)"
            return ~_text(column).rlike(rf"{flags}\A(?:{rule.pattern})\z")
        case "RANGE":
            return _outside(
                value,
                (_bound(column, rule.min_value), rule.min_inclusive),
                (_bound(column, rule.max_value), rule.max_inclusive),
            )
    length = F.size(value) if column.type.kind in ("array", "map") else F.length(_text(column))
    if rule.exact_length is not None:
        return length != rule.exact_length
    return _outside(length, (_lit(rule.min_length), True), (_lit(rule.max_length), True))


def _outside(value: "Expression", low: Bound, high: Bound) -> "Expression":
    from pyspark.sql import functions as F

    found = F.lit(False)
    if low[0] is not None:
        found = found | (value < low[0] if low[1] else value <= low[0])
    if high[0] is not None:
        found = found | (value > high[0] if high[1] else value >= high[0])
    return found


def _bound(column: Column, text: str | None) -> "Expression | None":
    """Return a bound as Spark compares it: numbers exactly, the rest as the column's own type."""
    from pyspark.sql import functions as F

    if text is None:
        return None
    if column.type.kind not in NUMBERS:
        return F.lit(text).cast(column.type.ddl)
    return F.lit(_number(column, text))


def _number(column: Column, text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise UserError(
            f"DataValidator: '{text}' is not a number, as column '{column.name}' holds."
            " Correct min_value or max_value."
        ) from error


def _lit(number: int | None) -> "Expression | None":
    from pyspark.sql import functions as F

    return None if number is None else F.lit(number)


def _text(column: Column) -> "Expression":
    """Return what is looked at: bytes as they are, the rest as the text that Java prints."""
    from pyspark.sql import functions as F

    value, text = F.col(quote(column.name)), SqlValue(quote(column.name))
    return value if column.type.kind == "bytes" else F.expr(as_text(text, column.type.kind))


def _rule_text(rule: Rule) -> str:
    """Return a rule as a user would write it."""
    match rule.rule_type:
        case "RANGE":
            low = "[" if rule.min_inclusive else "("
            high = "]" if rule.max_inclusive else ")"
            return f"RANGE {low}{rule.min_value or ''}, {rule.max_value or ''}{high}"
        case "LENGTH" if rule.exact_length is not None:
            return f"LENGTH {rule.exact_length}"
        case "LENGTH":
            return f"LENGTH [{rule.min_length or 0}, {rule.max_length or ''}]"
        case "REGEX":
            return f"REGEX {rule.pattern}"
    return "NOT_NULL"
