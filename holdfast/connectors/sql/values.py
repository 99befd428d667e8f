"""The pieces translation works with: a Spark SQL text, what is known of it, a function call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from holdfast.errors import UserError
from holdfast.model.types import UNKNOWN, Type

WHOLE = ("tinyint", "smallint", "int", "bigint")
BROKEN = ("float", "double")
NUMBERS = (*WHOLE, *BROKEN, "decimal")
MOMENTS = ("timestamp", "timestamp_tz")
TypeOf = Callable[[str], Type | None]
"""Asks Spark for the type of a text; None where it cannot tell."""

Weeks = Literal["2.3.9", "newer"]


@dataclass(frozen=True)
class Scope:
    """What an expression is written for: who knows types, which stage, and what the job chose."""

    ask: TypeOf
    stage: str = "Sql"
    zone: str = ""
    """The zone in which the fields of an instant are read; empty: the session's."""
    weeks: Weeks = "2.3.9"

    def __call__(self, sql: str) -> Type | None:
        """Return the type of a text in Spark SQL, or None."""
        return self.ask(sql)

    def fail(self, *said: str) -> str:
        """Return what stops the job with a sentence; its parts are Spark SQL.

        The stage comes first: Spark meets the row while a sink writes, whose fault it is not.
        """
        return f"raise_error(concat({literal(self.stage + ': ')}, {', '.join(said)}))"

    def checked(self, value: str, missing: str, to: Type, *said: str) -> str:
        """Return a value; where it is null, and not because something is missing, stop the job."""
        stop = f"cast({self.fail(*said)} AS {to.ddl})"
        return f"coalesce({value}, if({missing}, NULL, {stop}))"


STRING, INT, BIGINT, DOUBLE = Type("string"), Type("int"), Type("bigint"), Type("double")
BOOLEAN, DATE, TIMESTAMP, TIME = Type("boolean"), Type("date"), Type("timestamp"), Type("time")


@dataclass(frozen=True, slots=True)
class SqlValue:
    """A Spark SQL expression that may stand anywhere, without parentheses around it.

    `literal` is set where the query gives the value itself, and `written` says so.
    """

    sql: str
    type: Type | None = None
    literal: str | int | float | bool | None = None
    written: bool = False


NULL = SqlValue("NULL", Type("null"), None, True)


def text(value: str) -> SqlValue:
    """Return a text literal."""
    return SqlValue(literal(value), STRING, value, True)


def literal(value: str) -> str:
    """Return a text as Spark reads it back.

    Spark fills in `${env:HOME}` and its like before it parses, so the dollar is spelt out.
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


@dataclass(frozen=True)
class FunctionCall:
    """A function call: its name as written, its arguments, and who knows types."""

    name: str
    args: tuple[SqlValue, ...]
    scope: Scope

    def __len__(self) -> int:
        return len(self.args)

    def sql(self, index: int) -> str:
        """Return an argument."""
        return self.args[index].sql

    def type(self, index: int) -> Type:
        """Return an argument's type, with an empty kind where it is not known."""
        return type_of(self.args[index], self.scope)

    def kind(self, index: int) -> str:
        """Return the kind of an argument's type, or an empty text."""
        return self.type(index).kind

    def given(self, index: int) -> bool:
        """Say whether there is such an argument and it is not the word NULL."""
        return index < len(self.args) and self.args[index] != NULL

    def word(self, index: int, what: str) -> str:
        """Return an argument that must be a text in the query itself."""
        value = self.args[index]
        if not isinstance(value.literal, str):
            raise UserError(f"{self.name}: {what} must be a text in quotes, not {value.sql}.")
        return value.literal

    def whole(self, index: int) -> int | None:
        """Return an argument that the query gives as a whole number, else None."""
        found = self.args[index].literal
        return found if isinstance(found, int) and not isinstance(found, bool) else None


def type_of(value: SqlValue, scope: Scope) -> Type:
    """Return a value's type: known, or asked for, or of an empty kind."""
    return value.type or scope(value.sql) or UNKNOWN


Build = Callable[[FunctionCall], SqlValue | str]


@dataclass(frozen=True, slots=True)
class Function:
    """How a function is called and what it becomes.  `most` None: any number of arguments."""

    least: int
    most: int | None
    build: Build


def template(pattern: str, least: int = 1, type: Type | None = None) -> Function:
    """Return a function of exactly `least` arguments that fills them into a pattern."""

    def build(call: FunctionCall) -> SqlValue:
        return SqlValue(pattern.format(*(a.sql for a in call.args)), type)

    return Function(least, least, build)
