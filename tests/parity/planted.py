"""Bugs of the kinds that were found, planted one at a time; the table must catch each."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from holdfast.connectors.sql import (
    functions_number,
    functions_text,
    functions_time,
    operators,
    translate,
)
from holdfast.connectors.sql.values import BOOLEAN, Scope, SqlValue
from tests.parity.ours import Ours
from tests.parity.table import Line, lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Judged = Callable[[Sequence[Line], dict[str, str]], list[str]]


@dataclass(frozen=True)
class Bug:
    """A bug, which rules' expressions it may show in, and how it is planted."""

    name: str
    rules: tuple[str, ...]
    where: Any
    what: str
    wrong: Any


def _lost_digits(call: Any) -> SqlValue:
    sides = ", ".join(f"try_cast({call.sql(i)} AS decimal(38,16))" for i in (0, 1))
    return SqlValue(f"cast(try_mod({sides}) AS {call.type(1).ddl})", call.type(1))


def _lost_rows(value: SqlValue, items: Sequence[SqlValue], scope: Scope) -> SqlValue:
    sides = [f"try_cast({v.sql} AS double)" for v in (value, *items)]
    return SqlValue(f"({sides[0]} IN ({', '.join(sides[1:])}))", BOOLEAN)


def _null(scope: Scope, value: str, *_: Any) -> str:
    return value


def _no_zone(sql: str, kind: str, scope: Scope | None) -> str:
    return f"cast({sql} AS timestamp_ntz)" if kind == "timestamp_tz" else sql


def _wrapped_lines(call: Any) -> str:
    return f"base64(cast({call.sql(0)} AS binary))"


def _half_of_nan(sign: str, sides: Any, kinds: Any) -> str:
    return ""


NUMBER, TEXT = functions_number.NUMBER, functions_text.TEXT

BUGS = (
    Bug("a digit is lost", ("mod",), NUMBER, "MOD", _lost_digits),
    Bug("a zone is dropped", ("extract", "hour"), functions_time, "local", _no_zone),
    Bug("a null for a value that cannot be", ("cast",), Scope, "checked", _null),
    Bug("rows are lost by NOT IN", ("among",), translate, "among", _lost_rows),
    Bug("text is broken into lines", ("to_base64",), TEXT, "TO_BASE64", _wrapped_lines),
    Bug("NaN is the largest number", ("compare",), operators, "_not_nan", _half_of_nan),
)


@contextmanager
def _planted(bug: Bug) -> Iterator[None]:
    if not isinstance(bug.where, dict):
        with patch.object(bug.where, bug.what, bug.wrong):
            yield
        return
    from holdfast.connectors.sql.functions_other import FUNCTIONS

    old = FUNCTIONS[bug.what]
    with patch.dict(FUNCTIONS, {bug.what: type(old)(old.least, old.most, bug.wrong)}):
        yield


def check(spark: "SparkSession", judged: Judged) -> int:
    """Plant each bug; return how many the table did not catch."""
    table, missed, ours = lines(), 0, Ours(spark)
    for bug in BUGS:
        some = [line for line in table if line.rule in bug.rules]
        with _planted(bug):
            found = ours.values(some)
        wrong = [said for said in judged(some, found) if "of no expression" not in said]
        missed += not wrong
        print(f"{'caught' if wrong else 'MISSED'}: {bug.name} ({len(wrong)} of {len(some)})")
        for said in wrong[:1]:
            print(f"  {said}")
    return min(missed, 1)
