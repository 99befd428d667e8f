"""The options of FakeSource, and what is wrong with them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from holdfast.connect.literals import FLOAT_MAX, WHOLE, AnyValue, literal, row_values
from holdfast.connect.options import option, options
from holdfast.connect.schema import Schema
from holdfast.errors import SourceLocation
from holdfast.model.table import Column, Table
from holdfast.model.tree import Scalar
from holdfast.model.types import Type

Mode = Literal["range", "template"]
Problem = tuple[str, str]

DOUBLE_MAX = 1.7976931348623157e308
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")

_ANY_TIME = datetime(2000, 1, 1)


@options
class FakeRow:
    """One row that is given, not invented."""

    #: What the row says of itself.  Any other than INSERT makes the table a changelog.
    kind: Literal["INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"] = "INSERT"
    #: The row's values: a list in the order of the columns, or a block with their names.
    fields: AnyValue


@options
class FakeTable:
    """What to make up for one table."""

    #: The table's columns and keys.
    schema: Schema | None = option(None, identity=Schema.identity)
    #: Rows to emit as they stand; every split of every reader emits the whole list.
    rows: list[FakeRow] | None = None
    #: How many rows each parallel reader makes.
    row_num: int = option(5, key="row.num", at_least=0, identity=True)
    #: Into how many splits each reader's rows are cut.
    split_num: int = option(1, key="split.num", at_least=1, identity=True)
    #: Milliseconds between two splits of a reader, where the job makes checkpoints.
    split_read_interval: int = option(1, key="split.read-interval", at_least=0)
    #: Entries of each map; fewer where two keys turn out the same.
    map_size: int = option(5, key="map.size", at_least=0)
    #: Elements of each array.
    array_size: int = option(5, key="array.size", at_least=0)
    #: Bytes of each bytes value.
    bytes_length: int = option(5, key="bytes.length", at_least=0)
    #: Letters of each string; a column's own columnLength wins.
    string_length: int = option(5, key="string.length", at_least=0)
    #: How strings are chosen: random letters, or one of string.template.
    string_mode: Mode = option("range", key="string.fake.mode")
    #: Strings to choose from.
    string_template: list[str] | None = option(None, key="string.template")
    #: How tinyint values are chosen: in a range, or one of tinyint.template.
    tinyint_mode: Mode = option("range", key="tinyint.fake.mode")
    #: The least tinyint.
    tinyint_min: int = option(0, key="tinyint.min")
    #: The greatest tinyint.
    tinyint_max: int = option(127, key="tinyint.max")
    #: Tinyint values to choose from.
    tinyint_template: list[int] | None = option(None, key="tinyint.template")
    #: How smallint values are chosen: in a range, or one of smallint.template.
    smallint_mode: Mode = option("range", key="smallint.fake.mode")
    #: The least smallint.
    smallint_min: int = option(0, key="smallint.min")
    #: The greatest smallint.
    smallint_max: int = option(32767, key="smallint.max")
    #: Smallint values to choose from.
    smallint_template: list[int] | None = option(None, key="smallint.template")
    #: How int values are chosen: in a range, or one of int.template.
    int_mode: Mode = option("range", key="int.fake.mode", aliases=("int.fake.template",))
    #: The least int.
    int_min: int = option(0, key="int.min")
    #: The greatest int.
    int_max: int = option(2**31 - 1, key="int.max")
    #: Int values to choose from.
    int_template: list[int] | None = option(None, key="int.template")
    #: How bigint values are chosen: in a range, or one of bigint.template.
    bigint_mode: Mode = option("range", key="bigint.fake.mode")
    #: The least bigint.
    bigint_min: int = option(0, key="bigint.min")
    #: The greatest bigint.
    bigint_max: int = option(2**63 - 1, key="bigint.max")
    #: Bigint values to choose from.
    bigint_template: list[int] | None = option(None, key="bigint.template")
    #: How float values are chosen: in a range, or one of float.template.
    float_mode: Mode = option("range", key="float.fake.mode")
    #: The least float.
    float_min: float = option(0.0, key="float.min")
    #: The greatest float.
    float_max: float = option(FLOAT_MAX, key="float.max")
    #: Float values to choose from.
    float_template: list[float] | None = option(None, key="float.template")
    #: How double values are chosen: in a range, or one of double.template.
    double_mode: Mode = option("range", key="double.fake.mode")
    #: The least double.
    double_min: float = option(0.0, key="double.min")
    #: The greatest double.
    double_max: float = option(DOUBLE_MAX, key="double.max")
    #: Double values to choose from.
    double_template: list[float] | None = option(None, key="double.template")
    #: Years of dates and timestamps to choose from; without it, this year.
    date_year_template: list[int] | None = option(None, key="date.year.template")
    #: Months of dates and timestamps to choose from.
    date_month_template: list[int] | None = option(None, key="date.month.template")
    #: Days of dates and timestamps to choose from; one past a month's end becomes its last.
    date_day_template: list[int] | None = option(None, key="date.day.template")
    #: Hours of times and timestamps to choose from.
    time_hour_template: list[int] | None = option(None, key="time.hour.template")
    #: Minutes of times and timestamps to choose from.
    time_minute_template: list[int] | None = option(None, key="time.minute.template")
    #: Seconds of times and timestamps to choose from.
    time_second_template: list[int] | None = option(None, key="time.second.template")
    #: Numbers in each vector of floats.
    vector_dimension: int = option(4, key="vector.dimension", at_least=1)
    #: Bits in each binary_vector: a multiple of 8.
    binary_vector_dimension: int = option(8, key="binary.vector.dimension", at_least=8)
    #: The least number in a vector.
    vector_float_min: float = option(0.0, key="vector.float.min")
    #: The greatest number in a vector.
    vector_float_max: float = option(FLOAT_MAX, key="vector.float.max")
    #: Number the rows in the whole-number columns of the primary key, instead of random values.
    auto_increment_enabled: bool = option(False, key="auto.increment.enabled")
    #: The first of these numbers.
    auto_increment_start: int = option(1, key="auto.increment.start", identity=True)

    def problems(self) -> Iterator[Problem]:
        """Yield what no single option can see is wrong."""
        if self.schema is None:
            yield "schema", "required option 'schema' is missing."
        yield from self._range_problems()
        yield from self._template_problems()
        if self.binary_vector_dimension % 8:
            yield "binary_vector_dimension", "binary.vector.dimension must be a multiple of 8."
        if self.schema:
            yield from self._default_problems(self.schema.table)
            yield from self._row_problems(self.schema.table)

    def of(self, kind: str, what: str) -> Any:
        """Return an option of one number type, such as `of("int", "min")`."""
        return getattr(self, f"{kind}_{what}")

    @property
    def split_rows(self) -> int:
        """How many rows a split has; a reader's last may have fewer."""
        return -(-self.row_num // self.split_num)

    @property
    def splits(self) -> int:
        """How many splits each reader has: fewer than asked for where the rows do not suffice."""
        return -(-self.row_num // self.split_rows) if self.row_num else 0

    @property
    def changelog(self) -> bool:
        """Whether some row is more than an insert."""
        return any(row.kind != "INSERT" for row in self.rows or ())

    def _range_problems(self) -> Iterator[Problem]:
        for kind in (*NUMBERS, "vector_float"):
            least, greatest = self.of(kind, "min"), self.of(kind, "max")
            name = kind.replace("_", ".")
            if least > greatest:
                yield f"{kind}_min", f"{name}.min = {least} is above {name}.max = {greatest}."
            for what in ("min", "max"):
                yield from _fit(kind, f"{kind}_{what}", f"{name}.{what}", self.of(kind, what))

    def _template_problems(self) -> Iterator[Problem]:
        for kind in ("string", *NUMBERS):
            template = self.of(kind, "template")
            if self.of(kind, "mode") == "template" and not template:
                yield (
                    f"{kind}_mode",
                    f"{kind}.fake.mode = template needs {kind}.template = [ ... ].",
                )
            for value in template or ():
                yield from _fit(kind, f"{kind}_template", f"{kind}.template", value)
        bounds = {"date_month": (1, 12), "date_day": (1, 31), "date_year": (1, 9999)}
        bounds |= {"time_hour": (0, 23), "time_minute": (0, 59), "time_second": (0, 59)}
        for part, (least, greatest) in bounds.items():
            name = part.replace("_", ".") + ".template"
            for value in self.of(part, "template") or ():
                if not least <= value <= greatest:
                    yield f"{part}_template", f"{name}: {value} is not in {least} to {greatest}."

    def _default_problems(self, table: Table) -> Iterator[Problem]:
        for column in table.columns:
            try:
                default_literal(column, column.type, _ANY_TIME)
            except ValueError as error:
                yield "schema", f"defaultValue of column '{column.name}': {error}."

    def _row_problems(self, table: Table) -> Iterator[Problem]:
        for number, row in enumerate(self.rows or ()):
            try:
                values = row_values(row.fields.node, table.names)
            except ValueError as error:
                yield "rows", f"rows[{number}]: {error}."
                continue
            for column, value in zip(table.columns, values, strict=True):
                try:
                    literal(value, column.type, _ANY_TIME)
                except ValueError as error:
                    yield "rows", f"rows[{number}], column '{column.name}': {error}."


@options
class FakeOptions(FakeTable):
    """One table, or several in `tables_configs`."""

    #: Several tables: blocks that take the options of a single one.
    tables_configs: list[FakeTable] = option([], aliases=("table_list",), identity=True)

    def problems(self) -> Iterator[Problem]:
        """Yield what no single option can see is wrong."""
        if not self.tables_configs:
            yield from super().problems()
            return
        if self.schema or self.rows:
            yield "tables_configs", "give schema and rows inside tables_configs, not next to it."
        paths = [str(t.schema.table.path) for t in self.tables_configs if t.schema]
        for path in sorted({p for p in paths if paths.count(p) > 1}):
            named = f"schema.table = '{path}' is" if path else "a schema without 'table' is"
            yield (
                "tables_configs",
                f"{named} given more than once. Give each table a path of its own.",
            )

    @property
    def tables(self) -> tuple[FakeTable, ...]:
        """The options of each table."""
        return tuple(self.tables_configs) or (self,)


def default_literal(column: Column, kind: Type, now: datetime) -> str | None:
    """Return a column's default value as a literal of a type, or None if it has none."""
    if column.default is None or kind.kind in ("array", "map", "row", "null"):
        return None
    text = str(column.default)
    if isinstance(column.default, bool):
        text = text.lower()
    if kind.kind == "bytes":  # SeaTunnel takes the text's own bytes here, not base64
        return f"X'{text.encode().hex()}'"
    return literal(Scalar(text, text, SourceLocation("", 0, 0)), kind, now)


def _fit(kind: str, field: str, name: str, value: object) -> Iterator[Problem]:
    """Yield a problem if a number is outside its type."""
    if kind in WHOLE and isinstance(value, int):
        least, greatest = WHOLE[kind]
        if not least <= value <= greatest:
            yield field, f"{name}: {value} does not fit {kind}, which holds {least} to {greatest}."
    if kind in ("float", "vector_float") and isinstance(value, float) and abs(value) > FLOAT_MAX:
        yield field, f"{name}: {value} does not fit float, which holds up to {FLOAT_MAX}."
