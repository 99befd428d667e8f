"""Turn lines of JSON into Arrow batches by the rules of docs/values.md.

Arrow parses a whole block where each line is one plain object.  Where one is not, or where Arrow
might read a value differently from what the rules say, the lines of that block are read one by one:
the same values, or a Misfit for the line that has none.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from holdfast.connect.rejects import Misfit, wrong_value
from holdfast.connectors.files.text_conversion import (
    WHOLE,
    Spelling,
    arrow_type,
    column_of,
    exact_decimal,
    value_of,
)
from holdfast.connectors.files.values import named
from holdfast.model.table import Column
from holdfast.model.types import Type

MARK = b"\xef\xbb\xbf"

DIRECT = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
"""Kinds that Arrow's parser reads by our rules, once a few things are looked at."""

SPELLED = ("date", "time", "timestamp", "timestamp_tz", "bytes")
"""Kinds that are text in JSON."""

VECTORS = {
    "float_vector": Type("array", parts=(Type("float"),)),
    "float16_vector": Type("array", parts=(Type("float"),)),
    "bfloat16_vector": Type("array", parts=(Type("float"),)),
    "sparse_float_vector": Type("map", parts=(Type("int"), Type("float"))),
}

Reject = Callable[[Misfit], None]


class Number(str):
    """A number as it is written."""

    __slots__ = ()


class Wrong(ValueError):
    """A part of a row that is no value of its type: what it is, and the type."""

    def __init__(self, text: str, kind: Type) -> None:
        super().__init__(text)
        self.text = text
        self.kind = kind


@dataclass(frozen=True, slots=True)
class JsonRows:
    """Reads lines as rows of some columns.  Plain data, sent to Spark's workers."""

    columns: tuple[Column, ...]
    spelling: Spelling

    @property
    def schema(self) -> pa.Schema:
        """What the rows are in Arrow."""
        return pa.schema([(c.name, arrow_type(c.type)) for c in self.columns])

    def block(self, block: bytes, places: Callable[[int], str], reject: Reject) -> pa.Table:
        """Return the rows of whole lines; `places` says where the line with a number is.

        A line that is no row goes to `reject`, which may raise.
        """
        if (made := self._at_once(block)) is not None:
            return made
        lines = re.split(rb"\r\n|\r|\n", block)
        return self.lines(((n, line) for n, line in enumerate(lines)), places, reject)

    def lines(
        self,
        lines: "Iterator[tuple[int, bytes | str]]",
        places: Callable[[int], str],
        reject: Reject,
    ) -> pa.Table:
        """Return the rows of lines, each with its number, read one by one."""
        held: list[list[Any]] = [[] for _ in self.columns]
        for number, line in lines:
            text = line
            try:
                if isinstance(text, bytes):
                    text = text.decode()
                if not text.strip("\ufeff \t\r\n"):
                    continue
                made = self._rows_of(text)
            except (ValueError, RecursionError) as error:
                reject(Misfit(places(number), _rule(error), _shown(line)))
                continue
            for row in made:
                for values, value in zip(held, row, strict=True):
                    values.append(value)
        arrays = [pa.array(v, t) for v, t in zip(held, self.schema.types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _rows_of(self, text: str) -> list[list[Any]]:
        found = DECODER.decode(text.strip("\ufeff"))
        listed = found if type(found) is list else [found]
        rows = []
        for one in listed:
            if type(one) is not dict:
                raise json.JSONDecodeError("a row is an object", text, 0)
            rows.append([_column(one.get(c.name), c, self.spelling) for c in self.columns])
        return rows

    def _at_once(self, block: bytes) -> pa.Table | None:
        """Return rows as Arrow reads them; None if it does not, or might not by our rules."""
        if not all(c.type.kind in DIRECT or c.type.kind in SPELLED for c in self.columns):
            return None
        block = block.removeprefix(MARK)
        codes = np.frombuffer(block, np.uint8)
        rows = _rows_in(codes)
        decimals = any(c.type.kind == "decimal" for c in self.columns)
        if not rows or (decimals and _has_odd_numbers(codes)):
            return None
        try:
            block.decode()
            table = arrow_json.read_json(
                io.BytesIO(block),
                arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                arrow_json.ParseOptions(
                    explicit_schema=pa.schema([(c.name, _parsed(c.type)) for c in self.columns]),
                    unexpected_field_behavior="ignore",
                ),
            )
            if table.num_rows != rows:
                return None
            arrays = [
                _finished(a, c.type, self.spelling)
                for a, c in zip(table.columns, self.columns, strict=True)
            ]
        except ValueError:  # pa.ArrowInvalid is one, too
            return None
        return pa.Table.from_arrays(arrays, schema=self.schema)


def _rows_in(codes: "np.ndarray[Any, Any]") -> int:
    """Return how many lines there are, if each begins and ends as an object does; else 0.

    Between two such lines there can only be the end of one object and the begin of another.
    """
    ends = np.flatnonzero(codes == 0x0A)
    if not len(ends) or ends[-1] != len(codes) - 1:
        ends = np.append(ends, len(codes))
    turns = np.flatnonzero(codes[:-1] == 0x0D)
    if (codes[turns + 1] != 0x0A).any():
        return 0  # a carriage return alone ends a line, and is a blank to Arrow
    begins = np.concatenate(([0], ends[:-1] + 1))
    if (begins >= len(codes)).any() or (codes[begins] != ord("{")).any():
        return 0
    last = codes[ends - 1]
    last = np.where(last == 0x0D, codes[ends - 2], last)
    return len(ends) if (last == ord("}")).all() else 0


def _has_odd_numbers(codes: "np.ndarray[Any, Any]") -> bool:
    """Say whether there may be numbers that Arrow turns into wrong decimals.

    Its scaling wraps around where a number has more digits than its type, or an exponent.
    """
    digits = (codes - ord("0")) < 10
    others = np.flatnonzero(~digits)
    if len(others) and np.diff(others, prepend=-1, append=len(codes)).max() > 38:
        return True
    marks = np.flatnonzero((codes | 0x20) == ord("e"))
    return bool(digits[marks[marks > 0] - 1].any())


def _parsed(kind: Type) -> Any:
    """Return what the parser makes of a column; decimals have room to be scaled."""
    if kind.kind in SPELLED:
        return pa.string()
    return pa.decimal256(76, kind.scale) if kind.kind == "decimal" else arrow_type(kind)


def _finished(parsed: Any, kind: Type, spelling: Spelling) -> Any:
    """Return a parsed column as its type.  Raises ValueError if lines must be looked at."""
    if kind.kind in SPELLED:
        return column_of(parsed.combine_chunks(), kind, spelling)
    if kind.kind in ("float", "double") and pc.all(pc.is_finite(parsed)).as_py() is False:
        raise ValueError
    return pc.cast(parsed, arrow_type(kind)) if kind.kind == "decimal" else parsed


def _column(found: Any, column: Column, spelling: Spelling) -> Any:
    try:
        return json_value(found, column.type, spelling)
    except Wrong as wrong:
        rule = wrong_value(column.name, wrong.text, named(wrong.kind))
        raise ValueError(rule) from wrong


def json_value(found: Any, kind: Type, spelling: Spelling) -> Any:
    """Return what a part of a JSON row is as a value of a type.  Raises Wrong if it is none."""
    if found is None:
        return None
    kind = VECTORS.get(kind.kind, kind)
    match kind.kind:
        case "array" if type(found) is list:
            return [json_value(one, kind.parts[0], spelling) for one in found]
        case "map" if type(found) is dict:
            key, value = kind.parts
            return [
                (_scalar(k, key, spelling), json_value(v, value, spelling))
                for k, v in found.items()
            ]
        case "row" if type(found) is dict:
            return {n: json_value(found.get(n), t, spelling) for n, t in kind.fields}
        case "array" | "map" | "row":
            raise Wrong(_text(found), kind)
    return _scalar(found, kind, spelling)


def _scalar(found: Any, kind: Type, spelling: Spelling) -> Any:
    if kind.kind == "string":
        return _text(found)
    if kind.kind == "boolean" and isinstance(found, bool):
        return found
    # A number is text of its digits, and says nothing of days, hours, bytes and truth.
    silent = isinstance(found, Number) and kind.kind in (*SPELLED, "boolean", "binary_vector")
    try:
        if silent or not isinstance(found, str):
            raise ValueError
        whole = isinstance(found, Number) and kind.kind in WHOLE
        return value_of(_digits(found) if whole else found, kind, spelling)
    except ValueError as error:
        raise Wrong(_text(found), kind) from error


def _digits(number: str) -> str:
    """Return a whole number by its digits: 2.0 and 1e3 are such, too.  Raises ValueError if not."""
    return str(int(exact_decimal(Decimal(number), Type("decimal", 19, 0))))


def _text(found: Any) -> str:
    """Return a part of a row as text: strings as they are, everything else as JSON."""
    if isinstance(found, str):
        text = str(found)
        text.encode()  # half of a surrogate pair is no text
        return text
    return _json(found)


def _json(found: Any) -> str:
    match found:
        case Number():
            return str(found)
        case dict():
            pairs = (f"{json.dumps(k, ensure_ascii=False)}:{_json(v)}" for k, v in found.items())
            return "{" + ",".join(pairs) + "}"
        case list():
            return "[" + ",".join(map(_json, found)) + "]"
    made = json.dumps(found, ensure_ascii=False)
    made.encode()
    return made


def _rule(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return f"byte {error.object[error.start]:#04x} is no UTF-8"
        case UnicodeEncodeError():
            return "it has half of a surrogate pair, which is no text"
        case json.JSONDecodeError():
            return f"it is no JSON object: {error.msg} at character {error.pos + 1}"
        case RecursionError():
            return "it is nested too deeply"
    return str(error)


def _shown(line: bytes | str) -> str:
    return line.decode(errors="replace") if isinstance(line, bytes) else line


_number: Any = Number
DECODER = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_number)
"""Reads JSON with all digits of its numbers."""
