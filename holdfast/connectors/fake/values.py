"""Invented values as Spark SQL expressions over a row's number.

Every value is a function of the job, the table, the row's number and the place in the row, never
of a partition or a clock: a slice that is read again holds the same rows.  `Draw` gives random
bits for one place; the functions here shape bits into values.
"""

import hashlib
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from holdfast.connect.literals import VECTORS, WHOLE, text_literal
from holdfast.connectors.fake.options import FakeTable, default_literal
from holdfast.model.table import Column, Table
from holdfast.model.types import Type

ROW = "__row"
"""The column that holds a row's number."""

PAIRS = "__pairs"
"""The column that holds every pair of letters, the same for all rows."""

EXPANDED_MAX = 64
"""Up to so many values an array or map is written out, which Spark compiles; above, it loops."""

LETTERS_PER_DRAW = 10
LETTERS_MAX = 60
"""Longer strings repeat their first letters."""

FLOAT16_MAX = 65504.0
INT_MAX = 2**31 - 1

_LETTERS = string.ascii_letters
# Two letters at a time halve the work; Spark folds the split into one constant array.
PAIRS_SQL = f"split('{','.join(a + b for a in _LETTERS for b in _LETTERS)}', ',')"


@dataclass(frozen=True, slots=True)
class Draw:
    """A source of random bits for one place in a row.

    `path` distinguishes the place from all others; `loops` are the variables of the loops around
    it.
    """

    path: str
    loops: tuple[str, ...] = ()

    def at(self, part: object) -> "Draw":
        """Return the draw for a part of this place."""
        return replace(self, path=f"{self.path}/{part}")

    def inside(self, variable: str) -> "Draw":
        """Return the draw for the body of a loop."""
        return replace(self, loops=(*self.loops, variable))

    @property
    def bits(self) -> str:
        """An expression for 64 random bits, as a bigint."""
        digest = hashlib.blake2b(self.path.encode(), digest_size=8).digest()
        salt = int.from_bytes(digest, "big", signed=True)
        return f"xxhash64({', '.join((f'{ROW} ^ {_long(salt)}', *self.loops))})"

    def below(self, count: int, shift: int = 0) -> str:
        """An expression for a random int from 0 to `count` - 1, from the bits after `shift`."""
        bits = f"shiftright({self.bits}, {shift})" if shift else self.bits
        return f"CAST(pmod({bits}, {count}L) AS INT)"


@dataclass(frozen=True, slots=True)
class Values:
    """The expressions for one table's columns.  `now` decides what "this year" is."""

    options: FakeTable
    table: Table
    seed: str
    now: datetime

    def columns(self) -> list[str]:
        """Return an expression for each column, in order."""
        return [self._column(column) for column in self.table.columns]

    def _column(self, column: Column) -> str:
        default = default_literal(column, column.type, self.now)
        if default is not None:
            return default
        if self._is_numbered(column):
            start = _long(self.options.auto_increment_start)
            return f"CAST({start} + {ROW} AS {column.type.ddl})"
        return self._value(column.type, Draw(f"{self.seed}/{column.name}"), column.length)

    def _is_numbered(self, column: Column) -> bool:
        key = self.table.primary_key
        named = key is not None and column.name in key.columns
        return self.options.auto_increment_enabled and named and column.type.kind in WHOLE

    def _value(self, kind: Type, draw: Draw, length: int = 0) -> str:
        match kind.kind:
            case "null":
                return "CAST(NULL AS void)"
            case "boolean":
                return f"({draw.bits} & 1L) = 1L"
            case "string":
                template = self.options.string_template
                if template:
                    return _pick([text_literal(t) for t in template], draw)
                return _letters(length or self.options.string_length, draw)
            case "bytes":
                return f"CAST({_letters(self.options.bytes_length, draw)} AS BINARY)"
            case "decimal":
                return _decimal(kind.precision, kind.scale, draw)
            case "date" | "time" | "timestamp" | "timestamp_tz":
                return self._moment(kind.kind, draw)
            case "array" | "map" | "row":
                return self._compound(kind, draw)
            case "binary_vector":
                return _random_bytes(self.options.binary_vector_dimension // 8, draw)
            case name if name in VECTORS or name == "sparse_float_vector":
                return self._vector(kind, draw)
            case _:
                return self._number(kind, draw)

    def _number(self, kind: Type, draw: Draw) -> str:
        template = self.options.of(kind.kind, "template")
        if template:
            return _pick([f"CAST('{t}' AS {kind.ddl})" for t in template], draw)
        least, greatest = self.options.of(kind.kind, "min"), self.options.of(kind.kind, "max")
        make = _whole if kind.kind in WHOLE else _fraction
        return f"CAST({make(least, greatest, draw)} AS {kind.ddl})"

    def _moment(self, kind: str, draw: Draw) -> str:
        seconds = self._seconds(draw.at("clock"))
        if kind == "time":
            return f"CAST(time_from_seconds({seconds}) AS TIME(6))"
        day = self._date(draw)
        match kind:
            case "date":
                return day
            case "timestamp":
                return f"timestampadd(SECOND, {seconds}, CAST({day} AS TIMESTAMP_NTZ))"
            case _:
                return f"timestamp_seconds(unix_date({day}) * 86400L + {seconds})"

    def _seconds(self, draw: Draw) -> str:
        """Return an expression for the seconds since midnight."""
        hours, minutes = self.options.time_hour_template, self.options.time_minute_template
        seconds = self.options.time_second_template
        if not (hours or minutes or seconds):
            return draw.below(86400)
        hour = _part(hours, 0, 24, draw.at("hour"))
        minute = _part(minutes, 0, 60, draw.at("minute"))
        return f"({hour} * 3600 + {minute} * 60 + {_part(seconds, 0, 60, draw.at('second'))})"

    def _date(self, draw: Draw) -> str:
        year = _part(self.options.date_year_template, self.now.year, 1, draw.at("year"))
        month = _part(self.options.date_month_template, 1, 12, draw.at("month"))
        days = self.options.date_day_template
        day = _part(days, 1, 28, draw.at("day"))
        if days and max(days) > 28:
            day = f"least({day}, day(last_day(make_date({year}, {month}, 1))))"
        return f"make_date({year}, {month}, {day})"

    def _vector(self, kind: Type, draw: Draw) -> str:
        options = self.options
        greatest = options.vector_float_max
        if kind.kind == "float16_vector":
            greatest = min(greatest, FLOAT16_MAX)
        least = min(options.vector_float_min, greatest)

        def number(place: Draw) -> str:
            return f"CAST({_fraction(least, greatest, place)} AS FLOAT)"

        size = options.vector_dimension
        values = self._many(size, 1, draw.at("value"), number)
        if kind.kind != "sparse_float_vector":
            return values
        keys = self._many(
            size, 1, draw.at("key"), lambda place: f"CAST({_whole(0, INT_MAX, place)} AS INT)"
        )
        return _distinct_map(keys, values)

    def _compound(self, kind: Type, draw: Draw) -> str:
        if kind.kind == "row":
            fields = (
                f"{text_literal(name)}, {self._value(inner, draw.at(name))}"
                for name, inner in kind.fields
            )
            return f"named_struct({', '.join(fields)})"
        size = self.options.array_size if kind.kind == "array" else self.options.map_size
        if not size:
            return f"CAST({kind.kind}() AS {kind.ddl})"
        arrays = [
            self._many(size, self._weight(inner), draw.at(i), partial(self._value, inner))
            for i, inner in enumerate(kind.parts)
        ]
        return arrays[0] if kind.kind == "array" else _distinct_map(*arrays)

    def _many(self, size: int, weight: int, draw: Draw, make: Callable[[Draw], str]) -> str:
        """Return an array of `size` values, each from a draw of its own."""
        if size * weight <= EXPANDED_MAX:
            return f"array({', '.join(make(draw.at(i)) for i in range(size))})"
        variable = f"x{len(draw.loops)}"
        return f"transform(sequence(1, {size}), {variable} -> {make(draw.inside(variable))})"

    def _weight(self, kind: Type) -> int:
        """Return about how many expressions one value of a type takes."""
        parts = sum(self._weight(p) for p in kind.parts)
        match kind.kind:
            case "array":
                return parts * self.options.array_size
            case "map":
                return parts * self.options.map_size
            case "row":
                return parts
            case _:
                return 1


def _pick(choices: Sequence[str], draw: Draw) -> str:
    """Return an expression for one of some literals."""
    if len(choices) == 1:
        return choices[0]
    return f"get(array({', '.join(choices)}), {draw.below(len(choices))})"


def _part(template: list[int] | None, least: int, count: int, draw: Draw) -> str:
    """Return an expression for a part of a date or time: of a template, or `count` from `least`."""
    if template:
        return _pick([str(t) for t in template], draw)
    return str(least) if count == 1 else f"({least} + {draw.below(count)})"


def _letters(length: int, draw: Draw) -> str:
    """Return an expression for random letters."""
    made = min(length, LETTERS_MAX)
    pieces = []
    for start in range(0, made, 2):
        # One draw has bits for five pairs.
        place, used = divmod(start, LETTERS_PER_DRAW)
        index = draw.at(place).below(len(_LETTERS) ** 2, used // 2 * 12)
        pieces.append(f"get({PAIRS}, {index})")
    if not pieces:
        return "''"
    if made % 2:
        pieces[-1] = f"substring({pieces[-1]}, 1, 1)"
    text = f"concat({', '.join(pieces)})"
    if made == length:
        return text
    return f"substring(repeat({text}, {-(-length // made)}), 1, {length})"


def _whole(least: int, greatest: int, draw: Draw) -> str:
    """Return a bigint expression from `least` to `greatest`, both included, without overflow."""
    count = greatest - least + 1
    if count < 2**63:
        return f"{_long(least)} + pmod({draw.bits}, {_long(count)})"
    if count == 2**63:
        return f"{_long(least)} + shiftrightunsigned({draw.bits}, 1)"
    if count == 2**64:
        return draw.bits
    # Half of the count fits a bigint: go that far up from the least, or down from the greatest.
    half = f"pmod({draw.at('half').bits}, {_long(count // 2)})"
    return f"IF({draw.bits} > 0L, {_long(least)} + {half}, {_long(greatest)} - {half})"


def _fraction(least: float, greatest: float, draw: Draw) -> str:
    """Return a double expression from `least` to `greatest`."""
    unit = f"(shiftrightunsigned({draw.bits}, 11) * 1.1102230246251565E-16D)"
    low, high = f"CAST('{least!r}' AS DOUBLE)", f"CAST('{greatest!r}' AS DOUBLE)"
    # Mixing the ends cannot overflow as their difference could; rounding may still leave them.
    return f"least(greatest({low} * (1D - {unit}) + {high} * {unit}, {low}), {high})"


def _decimal(precision: int, scale: int, draw: Draw) -> str:
    """Return an expression for a decimal with random digits."""
    ddl = f"decimal({precision},{scale})"
    if precision <= 18:
        digits = f"CAST(pmod({draw.bits}, {10**precision}L) AS decimal({precision},0))"
        unit = f"CAST('1E-{scale}' AS decimal({scale},{scale}))"
        return f"CAST({digits} * {unit} AS {ddl})" if scale else digits
    sizes = [min(18, precision - at) for at in range(0, precision, 18)]
    pieces = (
        f"lpad(CAST(pmod({draw.at(i).bits}, {10**n}L) AS STRING), {n}, '0')"
        for i, n in enumerate(sizes)
    )
    return f"CAST(concat({', '.join(pieces)}, 'E-{scale}') AS {ddl})"


def _random_bytes(count: int, draw: Draw) -> str:
    """Return an expression for random bytes."""
    words = (f"lpad(hex({draw.at(i).bits}), 16, '0')" for i in range(-(-count // 8)))
    return f"unhex(substring(concat({', '.join(words)}), 1, {count * 2}))"


def _distinct_map(keys: str, values: str) -> str:
    """Return a map of two arrays; a key that was drawn twice counts once, as Spark insists."""
    known = f"array_distinct({keys})"
    return f"map_from_arrays({known}, slice({values}, 1, size({known})))"


def _long(value: int) -> str:
    return f"CAST('{value}' AS BIGINT)"
