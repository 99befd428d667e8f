"""Column types as job files name them, and how Spark spells each.

A type is data: its kind, and for compound kinds its parts.  `parse_type` reads SeaTunnel's
notation (`decimal(10, 2)`, `map<string, array<int>>`, `{a = int, b = string}`), `Type.ddl` writes
Spark's, and `from_spark` reads Spark's own JSON description back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

SIMPLE = {
    # job file: Spark
    "string": "string",
    "boolean": "boolean",
    "tinyint": "tinyint",
    "smallint": "smallint",
    "int": "int",
    "bigint": "bigint",
    "float": "float",
    "double": "double",
    "null": "void",
    "bytes": "binary",
    "date": "date",
    "time": "time(6)",
    "timestamp": "timestamp_ntz",
    "timestamp_tz": "timestamp",
    "float_vector": "array<float>",
    "float16_vector": "array<float>",
    "bfloat16_vector": "array<float>",
    "binary_vector": "binary",
    "sparse_float_vector": "map<int,float>",
}

ALIASES = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "binary": "bytes",
    "bool": "boolean",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "datetime": "timestamp",
    "timestamp_ntz": "timestamp",
    "timestamp_ltz": "timestamp_tz",
    "void": "null",
}

MAX_PRECISION = 38


@dataclass(frozen=True, slots=True)
class Type:
    """A column type.  `parts` holds an array's element, a map's key and value, a row's fields."""

    kind: str
    precision: int = 0
    scale: int = 0
    parts: tuple["Type", ...] = ()
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        match self.kind:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "array":
                return f"array<{self.parts[0]}>"
            case "map":
                return f"map<{self.parts[0]}, {self.parts[1]}>"
            case "row":
                return "{" + ", ".join(f"{n} = {t}" for n, t in self.fields) + "}"
            case _:
                return self.kind

    @property
    def fields(self) -> tuple[tuple[str, "Type"], ...]:
        """The fields of a row, in order."""
        return tuple(zip(self.names, self.parts, strict=True))

    @property
    def ddl(self) -> str:
        """This type in Spark's DDL."""
        match self.kind:
            case "decimal":
                return f"decimal({self.precision},{self.scale})"
            case "array":
                return f"array<{self.parts[0].ddl}>"
            case "map":
                return f"map<{self.parts[0].ddl},{self.parts[1].ddl}>"
            case "row":
                return "struct<" + ",".join(f"{quote(n)}:{t.ddl}" for n, t in self.fields) + ">"
            case _:
                return SIMPLE[self.kind]


UNKNOWN = Type("")
"""A type that only Spark can tell, in what is foreseen without it."""


def quote(name: str) -> str:
    """Return a column name as Spark SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def row(fields: Mapping[str, Type]) -> Type:
    """Return the row type with these fields."""
    return Type("row", names=tuple(fields), parts=tuple(fields.values()))


@lru_cache(1024)
def parse_type(text: str) -> Type:
    """Read a type from a job file.  Raises ValueError with a sentence if it is none."""
    reader = _Reader(text)
    found = reader.type()
    reader.skip()
    if reader.at < len(text):
        raise ValueError(f"'{text}' has more after the type, at '{text[reader.at :]}'")
    return found


def from_spark(described: str | Mapping[str, Any]) -> Type:
    """Read a type from `DataType.jsonValue()`."""
    if isinstance(described, Mapping):
        match described["type"]:
            case "array":
                return Type("array", parts=(from_spark(described["elementType"]),))
            case "map":
                key, value = from_spark(described["keyType"]), from_spark(described["valueType"])
                return Type("map", parts=(key, value))
            case "struct":
                return row({f["name"]: from_spark(f["type"]) for f in described["fields"]})
            case _:
                return Type("string")  # user-defined and interval types are shown as text
    name = described.partition("(")[0]
    if name == "decimal":
        return parse_type(described)
    if name == "time":
        return Type("time")
    if name == "timestamp":  # Spark's plain timestamp is an instant, SeaTunnel's is not
        return Type("timestamp_tz")
    name = ALIASES.get(name, name)
    return Type(name if name in SIMPLE else "string")


def _unknown(name: str) -> str:
    """Return what to say of a word that is no type."""
    compound = ("decimal(p, s)", "array<type>", "map<type, type>", "{ name = type }")
    words = [*SIMPLE, *ALIASES, "decimal", "array", "map"]
    close = get_close_matches(name, words, n=1, cutoff=0.7)
    if close:
        return f"'{name}' is not a type; the nearest is '{close[0]}'"
    return f"'{name}' is not a type. Use {', '.join((*SIMPLE, *compound))}"


class _Reader:
    """A cursor over the text of a type."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def here(self) -> str:
        """The character at the cursor; empty at the end."""
        return self.text[self.at : self.at + 1]

    def skip(self, also: str = "") -> None:
        while self.here and (self.here.isspace() or self.here in also):
            self.at += 1

    def take(self, mark: str) -> bool:
        self.skip()
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.take(mark):
            rest = self.text[self.at :] or "its end"
            raise ValueError(f"'{self.text}' should have '{mark}' before '{rest}'")

    def word(self) -> str:
        self.skip()
        if self.here and self.here in "\"'":
            mark = self.text[self.at]
            end = self.text.find(mark, self.at + 1)
            if end < 0:
                raise ValueError(f"'{self.text}' opens a quote and does not close it")
            word, self.at = self.text[self.at + 1 : end], end + 1
            return word
        start = self.at
        while self.here and (self.here.isalnum() or self.here in "_-"):
            self.at += 1
        return self.text[start : self.at]

    def number(self) -> int:
        word = self.word()
        if not word.isdigit():
            raise ValueError(f"'{self.text}' needs a whole number where it says '{word}'")
        return int(word)

    def type(self) -> Type:
        if self.take("{"):
            return self._row()
        self.skip()
        if self.here and self.here in "\"'":
            return parse_type(self.word())
        name = self.word().lower()
        name = ALIASES.get(name, name)
        match name:
            case "decimal":
                return self._decimal()
            case "array":
                self.expect("<")
                element = self.type()
                self.expect(">")
                return Type("array", parts=(element,))
            case "map":
                self.expect("<")
                key = self.type()
                self.expect(",")
                value = self.type()
                self.expect(">")
                return Type("map", parts=(key, value))
        if name not in SIMPLE:
            raise ValueError(_unknown(name or self.text))
        if self.take("("):  # a length or precision, as in varchar(20); Spark has no use for it
            self.number()
            self.expect(")")
        return Type(name)

    def _decimal(self) -> Type:
        if not self.take("("):
            return Type("decimal", MAX_PRECISION, 18)
        precision = self.number()
        scale = self.number() if self.take(",") else 0
        self.expect(")")
        if not 0 < precision <= MAX_PRECISION or scale > precision:
            raise ValueError(
                f"decimal({precision},{scale}) does not fit: at most {MAX_PRECISION} digits,"
                " and no more of them after the point than in all"
            )
        return Type("decimal", precision, scale)

    def _row(self) -> Type:
        fields: dict[str, Type] = {}
        self.skip(",")
        while not self.take("}"):
            name = self.word()
            if not name:
                raise ValueError(f"'{self.text}' needs a field name at '{self.text[self.at :]}'")
            self.skip("=:")
            fields[name] = self.type()
            self.skip(",")
        return row(fields)
