"""Rows that do not fit their table: what a job does about them, what is said, how they are counted.

A row does not fit if it has too few or too many fields, a text that is no value of its column's
type, or bytes that are no text.  `row_error_handle_way` says what a source does then: FAIL ends the
job with the sentence of a `Misfit`; SKIP leaves the row out and counts it.
"""

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from holdfast.errors import UserError

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext
    from pyspark.sql import Column, SparkSession


OPTION = "row_error_handle_way"
VALUE_CHARS_MAX = 100
ROW_CHARS_MAX = 200

_tokens = itertools.count(1)
_spare: "WeakKeyDictionary[SparkContext, list[Accumulator[_Counts]]]" = WeakKeyDictionary()
_lock = threading.Lock()

_Counts = dict[tuple[int, int], int]


class RowErrors(StrEnum):
    """What a source does with a row that does not fit: the values of `row_error_handle_way`."""

    FAIL = "FAIL"
    SKIP = "SKIP"
    ROUTE_TO_TABLE = "ROUTE_TO_TABLE"


def row_error_problems(way: RowErrors) -> Iterator[tuple[str, str]]:
    """Yield (option, sentence) where a job asks for what no source does."""
    if way is RowErrors.ROUTE_TO_TABLE:
        yield (
            OPTION,
            f"{OPTION} = ROUTE_TO_TABLE is not supported: no table takes such rows. Use FAIL to end"
            " the job at the first one, or SKIP to leave them out and count them.",
        )


@dataclass(frozen=True, slots=True)
class Misfit:
    """A row that does not fit.

    `place` is where it is (`file a.csv, line 7`), `rule` what is wrong, as the end of a sentence,
    `row` its text.  `remedy` says what to do instead of skipping it; the usual one is to correct
    it.
    """

    place: str
    rule: str
    row: str
    remedy: str = "Correct the row"

    def error(self, stage: str) -> UserError:
        """Return the error that ends the job, in one line."""
        return UserError(
            f"{stage} cannot read {self.place}: {self.rule}. Row: {shown(self.row, ROW_CHARS_MAX)}."
            f" {self.remedy}, or set {OPTION} = SKIP to leave such rows out and count them.",
            code="source.row",
        )


def wrong_value(column: str, value: str, wanted: str) -> str:
    """Return the rule that a value has broken; `wanted` is a type as in `an int`."""
    return f"column {column} = '{shown(value, VALUE_CHARS_MAX)}' is not {wanted}"


def shown(text: str, chars_max: int) -> str:
    """Return a text in one line, cut."""
    cut = text[:chars_max]
    line = "".join(c if c.isprintable() else _escaped(c) for c in cut)
    return line if len(text) <= chars_max else f"{line}... ({len(text):,} characters)"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


class Counting(Protocol):
    """Who counts rows that are left out of a slice."""

    @property
    def value(self) -> int:
        """Rows left out by the tasks that have ended."""
        ...

    def close(self) -> None:
        """Count no further; the sum stays.  May be repeated."""
        ...


class Rejects:
    """How many rows of one slice have been left out.  Any thread may look.

    Tasks count for each split, so a split that Spark reads twice counts once.
    """

    def __init__(self) -> None:
        self._context: SparkContext | None = None
        self._counter: RejectCounter | None = None
        self._total = 0

    def begin(self, context: "SparkContext") -> "RejectCounter":
        """Return what tasks count with."""
        self.close()
        empty: _Counts = {}
        most: Any = _Most()  # in all but name what Spark, which may not be there, calls a param
        with _lock:
            found = _spare.setdefault(context, [])
            accumulator = found.pop() if found else context.accumulator(empty, most)
        self._context = context
        self._counter = RejectCounter(accumulator, next(_tokens))
        return self._counter

    @property
    def value(self) -> int:
        """Rows left out by the tasks that have ended."""
        counter = self._counter
        return counter.total if counter else self._total

    def close(self) -> None:
        """Count no further; the sum stays.  May be repeated."""
        counter, context = self._counter, self._context
        if counter is None or context is None:
            return
        self._total = counter.total
        self._counter = None
        counter.accumulator.value = {}
        with _lock:
            _spare[context].append(counter.accumulator)


@dataclass(frozen=True, slots=True)
class RejectCounter:
    """Counts rows that tasks leave out.  Goes to Spark's Python workers."""

    accumulator: "Accumulator[_Counts]"
    token: int

    def add(self, split: int, rows: int) -> None:
        """Count rows of a split: all of them so far."""
        self.accumulator.add({(self.token, split): rows})

    @property
    def total(self) -> int:
        """The sum of all splits, in the driver."""
        counts = self.accumulator.value
        return sum(rows for (token, _), rows in counts.items() if token == self.token)


class _Most:
    """Adds counts up: of one split, the greatest is right."""

    def zero(self, value: _Counts) -> _Counts:
        return {}

    def addInPlace(self, one: _Counts, other: _Counts) -> _Counts:
        return one | {key: max(rows, one.get(key, 0)) for key, rows in other.items()}


class LeftOut:
    """How many rows of one slice a transform has left out.

    Tasks count for each part of a stage (`Rejected.java`), so what Spark reads twice counts once.
    """

    def __init__(self, spark: "SparkSession") -> None:
        java: Any = spark._jvm
        self._counts = getattr(java.holdfast, "Rejected$Counts")()
        context: Any = spark.sparkContext._jsc
        context.sc().register(self._counts)
        self._stays = java.holdfast.Rejected.staying(self._counts)
        self._total = 0

    def stays(self, broken: "Column") -> "Column":
        """Return whether a row stays, given whether it breaks a rule; one that does not counts."""
        from pyspark.sql.classic.column import Column, _to_seq
        from pyspark.sql.utils import get_active_spark_context

        column: Any = broken
        columns = _to_seq(get_active_spark_context(), [column._jc])
        found: Column = Column(self._stays.apply(columns))
        return found

    @property
    def value(self) -> int:
        """Rows left out by the tasks that have ended."""
        return int(self._counts.total()) if self._counts is not None else self._total

    def close(self) -> None:
        """Count no further; the sum stays.  May be repeated."""
        self._total = self.value
        self._counts = None
