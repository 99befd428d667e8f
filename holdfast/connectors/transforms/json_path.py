"""JsonPath: take values out of JSON into columns of their own.

`json = lenient` reads each document once, in Spark's Python workers, with all its paths.
`json = strict` stays inside the JVM and is faster; it knows simple paths only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import options
from holdfast.connect.rows import Rows
from holdfast.connect.schema import type_from_node
from holdfast.connect.transform import Transform
from holdfast.connectors.transforms.columns import (
    add_columns,
    check_unique,
    find_columns,
    with_new,
)
from holdfast.connectors.transforms.json.query import MISSING, Ask, Query, answer_batch
from holdfast.errors import UserError
from holdfast.model.table import Table
from holdfast.model.tree import Items, Node
from holdfast.model.types import UNKNOWN, Type, quote

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql._typing import UserDefinedFunctionLike

STRICT_PATH = re.compile(r"\$(\.[A-Za-z_]\w*|\['[^'\]]+'\]|\[\d+\])*")
BROKEN_NUMBER = r"\A-?\d+\.\d+(E-?\d+)?\z"
"""A number with a point, as Spark writes it."""

SHOWN = 60
"""How much of a value an error shows."""


@dataclass(frozen=True, slots=True)
class Types:
    """One type, or one for each path."""

    types: tuple[Type, ...]

    type_text = "type or list of type"

    def __str__(self) -> str:
        return ", ".join(str(kind) for kind in self.types)

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "Types":
        """Read the types; those that JSON cannot give are mistakes."""
        nodes = node.items if isinstance(node, Items) else (node,)
        found = [type_from_node(n, where, report) for n in nodes]
        for kind in found:
            if kind and (why := check_type(kind)):
                raise ValueError(why)
        return cls(tuple(kind for kind in found if kind))


@dataclass(frozen=True, slots=True)
class Value:
    """One new column: where its value is, its type, and what happens if there is none."""

    source: str
    name: str
    path: str
    type: Type
    way: Literal["FAIL", "SKIP", "SKIP_ROW"]


@options
class JsonPathColumn:
    """Values to take out of one column."""

    src_field: str  #: The column with the JSON: text, bytes, an array, a map or a row.
    dest_field: list[str]  #: The new column, or one for each path.
    path: list[str]  #: Where the value is, such as $.data.name; a list takes several values.
    #: The new column's type, or one for each path. One type serves all paths.
    dest_type: Types = Types((Type("string"),))
    #: What to do if this value is missing or of another type: FAIL stops the job, SKIP leaves
    #: null, SKIP_ROW leaves out the row. Without it, `row_error_handle_way` decides.
    column_error_handle_way: Literal["FAIL", "SKIP", "SKIP_ROW"] | None = None

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the paths and how many there are."""
        if len(self.path) != len(self.dest_field):
            yield (
                "path",
                f"{len(self.path)} paths for {len(self.dest_field)} columns. Give as many.",
            )
        if len(self.dest_type.types) not in (1, len(self.path)):
            yield "dest_type", "give one type, or one for each path."
        for path in self.path:
            try:
                Query(path)
            except ValueError as error:
                yield "path", f"{error}."


@options
class JsonPathOptions:
    """Which values to take out of which columns."""

    columns: list[JsonPathColumn]  #: The values to take, in the order of their new columns.
    #: What to do with a row whose value is missing or of another type: FAIL stops the job, SKIP
    #: leaves out the row.
    row_error_handle_way: Literal["FAIL", "SKIP"] = "FAIL"
    #: How to read JSON. `lenient` forgives missing quotes and spare commas, as SeaTunnel does.
    #: `strict` takes real JSON and simple paths ($.a.b[0]) and is faster: no row leaves the JVM.
    json: Literal["lenient", "strict"] = "lenient"

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong about the columns together."""
        if not self.columns:
            yield "columns", "'columns' is empty. Name at least one value."
        if twice := check_unique([n for c in self.columns for n in c.dest_field], "'columns'"):
            yield "columns", f"{twice} Give each value a column of its own."
        for path in (p for c in self.columns for p in c.path):
            if self.json == "strict" and not STRICT_PATH.fullmatch(path):
                yield (
                    "json",
                    f"'{path}' is not a simple path such as $.a.b[0]. Use json = lenient.",
                )

    @property
    def values(self) -> list[Value]:
        """Every new column, in order."""
        row_way: Literal["FAIL", "SKIP_ROW"] = (
            "FAIL" if self.row_error_handle_way == "FAIL" else "SKIP_ROW"
        )
        made: list[Value] = []
        for column in self.columns:
            types = column.dest_type.types
            if len(types) == 1:
                types *= len(column.path)
            way = column.column_error_handle_way or row_way
            for name, path, kind in zip(column.dest_field, column.path, types, strict=True):
                made.append(Value(column.src_field, name, path, kind, way))
        return made


class JsonPath(Transform[JsonPathOptions]):
    """Adds columns with values found in JSON; one that exists is overwritten."""

    name = "JsonPath"

    def apply(self, rows: Rows) -> Rows:
        """Return the table with a column for each value."""
        from pyspark.sql import functions as F

        values = self.options.values
        texts = {v.source: json_text(v.source, self._kind(rows.table, v.source)) for v in values}
        if self.options.json == "lenient":
            rows, found = _found_lenient(rows, values, texts)
        else:
            found = {v.name: _found_strict(texts[v.source], v.path) for v in values}
        made: dict[str, Expression] = {}
        frame = rows.frame
        for value in values:
            text, error = found[value.name]
            cast = typed(text, value.type, fail=value.way == "FAIL")
            wrong = F.concat(
                F.lit("'"), F.substring(text, 1, SHOWN), F.lit(f"' is no {value.type}")
            )
            problem = F.coalesce(error, F.when(text.isNotNull() & cast.isNull(), wrong))
            if value.way == "FAIL":
                stop = F.raise_error(self._message(rows, value, problem))
                cast = F.when(problem.isNotNull(), stop).otherwise(cast)
            elif value.way == "SKIP_ROW":
                frame = frame.where(problem.isNull())
            made[value.name] = cast
        return add_columns(Rows(rows.table, frame), made)

    def foresee(self, table: Table) -> Table | None:
        """Return the table as it will be."""
        values = self.options.values
        find_columns(table, [value.source for value in values], self.context.stage)
        for value in values:
            self._kind(table, value.source)
        return with_new(table, {v.name: v.type for v in values})

    def _kind(self, table: Table, name: str) -> Type:
        kind = find_columns(table, [name], self.context.stage)[name].type
        if kind.kind not in READABLE and kind != UNKNOWN:
            raise UserError(
                f"{self.context.stage}: column '{name}' of table {table.path} is of type"
                f" {kind}, which holds no JSON. Use a column of type {', '.join(READABLE)}."
            )
        return kind

    def _message(self, rows: Rows, value: Value, problem: "Expression") -> "Expression":
        from pyspark.sql import functions as F

        return F.concat(
            F.lit(
                f"{self.context.stage}: column '{value.name}' of table {rows.table.path} cannot be"
                f" read from {value.path} of column '{value.source}': "
            ),
            problem,
            F.lit(". Correct the data, or set column_error_handle_way = SKIP or SKIP_ROW."),
        )


Found = tuple["Expression", "Expression"]
"""A value as text, and why there is none; both null where the JSON says null."""


def _found_lenient(
    rows: Rows, values: list[Value], texts: "dict[str, Expression]"
) -> tuple[Rows, dict[str, Found]]:
    """Read each source column once, into a struct next to the table's columns."""
    from pyspark.sql import functions as F

    frame, found = rows.frame, {}
    skips = any(v.way == "SKIP_ROW" for v in values)
    for number, (source, text) in enumerate(texts.items()):
        own = [v for v in values if v.source == source]
        read = _reader(tuple(Ask(v.path, v.type.kind in WHOLE) for v in own))
        # Spark would push a filter below the function and so call it twice.
        answer = (read.asNondeterministic() if skips else read)(text)
        name = f"__json{number}"
        frame = frame.withColumn(name, answer)
        for i, value in enumerate(own):
            struct = F.col(quote(name))
            found[value.name] = (struct.getField(f"v{i}"), struct.getField(f"e{i}"))
    return Rows(rows.table, frame), found


def _reader(asks: tuple[Ask, ...]) -> "UserDefinedFunctionLike":
    """Return a Spark function from JSON text to the answers to these paths."""
    from pyspark.sql.pandas.functions import arrow_udf

    def read_json(texts: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return answer_batch(texts, asks)

    fields = ",".join(f"v{i}:string,e{i}:string" for i in range(len(asks)))
    made: UserDefinedFunctionLike
    made = arrow_udf(read_json, f"struct<{fields}>")  # type: ignore[call-overload]
    return made


def _found_strict(text: "Expression", path: str) -> Found:
    """Let the JVM read a simple path; only where it finds nothing is the reason looked for."""
    from pyspark.sql import functions as F

    value = F.get_json_object(text, path)
    document = F.try_parse_json(text)
    variant = F.try_variant_get(document, path, "variant")
    # Spark reads a number with a point as a double here, and as its digits there.
    exact = F.coalesce(F.try_variant_get(document, path, "string"), value)
    value = F.when(value.rlike(BROKEN_NUMBER), exact).otherwise(value)
    reason = F.when(document.isNull(), "it is not JSON").when(variant.isNull(), MISSING)
    # Spark shows a null in a list as the word.
    null = (value == "null") & F.is_variant_null(variant)
    return F.when(~null, value), F.when(text.isNotNull() & value.isNull(), reason)


READABLE = ("string", "bytes", "array", "map", "row")
"""The kinds of column that hold JSON, or can be shown as it."""

WHOLE = ("tinyint", "smallint", "int", "bigint")
KEEP_NULLS = {"ignoreNullFields": "false"}

# Dates such as 2023/10/29, 2023.10.29 and 20231029, for the part of a text before any time.
_DATE_MARKS = (
    (r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})", "$1-$2-$3"),
    (r"^(\d{4})(\d{2})(\d{2})(?=$|[ T])", "$1-$2-$3"),
)


def json_text(name: str, kind: Type) -> "Expression":
    """Return a column as JSON text; a row becomes the list of its fields, as in SeaTunnel."""
    from pyspark.sql import functions as F

    column = F.col(quote(name))
    match kind.kind:
        case "string":
            return column
        case "bytes":
            return F.make_valid_utf8(column.cast("string"))
        case "row":
            fields = [_item(column.getField(field)) for field in kind.names]
            listed = F.concat(F.lit("["), F.concat_ws(",", *fields), F.lit("]"))
            return F.when(column.isNotNull(), listed)
    return F.to_json(column, KEEP_NULLS)


def typed(text: "Expression", kind: Type, fail: bool) -> "Expression":
    """Return the text as a value of a type; null where it is not of that type.

    `fail`: a part of a list, map or row that is not of its type stops the job, which Spark's own
    error then explains; else that part is null.
    """
    from pyspark.sql import functions as F

    match kind.kind:
        case "string":
            return text
        case "boolean":
            word = F.lower(F.trim(text))
            return F.when(word == "true", True).when(word == "false", False)
        case "bytes":
            return F.try_to_binary(text, F.lit("base64"))
        case "date" | "timestamp" | "timestamp_tz":
            return _dashed(F.trim(text)).try_cast(kind.ddl)
        case "array" | "map" | "row" | "float_vector":
            read = F.from_json(text, _texts(kind))
            return read.cast(kind.ddl) if fail else read.try_cast(kind.ddl)
    return F.trim(text).try_cast(kind.ddl)


def check_type(kind: Type) -> str | None:
    """Return why JSON cannot give this type, or None."""
    if kind.kind == "map" and kind.parts[0].kind != "string":
        return f"{kind}: the keys of a JSON object are text. Use map<string, {kind.parts[1]}>"
    if kind.kind.endswith("_vector") and kind.kind != "float_vector":
        return f"{kind} cannot be read from JSON. Use array<float> or float_vector"
    return next((why for part in kind.parts if (why := check_type(part))), None)


def _item(field: "Expression") -> "Expression":
    """Return any value as JSON; Spark writes only compound ones, so it is put in a list first."""
    from pyspark.sql import functions as F

    listed = F.to_json(F.array(field), KEEP_NULLS)
    return F.substring(listed, F.lit(2), F.length(listed) - 2)


def _dashed(text: "Expression") -> "Expression":
    from pyspark.sql import functions as F

    for pattern, dashes in _DATE_MARKS:
        text = F.regexp_replace(text, pattern, dashes)
    return text


def _texts(kind: Type) -> str:
    """Return the type with text at every leaf, so that "42" and 42 both become numbers."""
    match kind.kind:
        case "float_vector":
            return "array<string>"
        case "array":
            return f"array<{_texts(kind.parts[0])}>"
        case "map":
            return f"map<string,{_texts(kind.parts[1])}>"
        case "row":
            fields = ",".join(f"{quote(n)}:{_texts(t)}" for n, t in kind.fields)
            return f"struct<{fields}>"
    return "string"
