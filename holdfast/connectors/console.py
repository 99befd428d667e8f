"""Console: print rows as SeaTunnel prints them, line for line.

Spark turns each row into one text; the texts come to this process a partition at a time and are
printed by one writer, so that lines do not mix.
"""

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from holdfast.connect.options import option, options
from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import Committable, Sink, Staging, WritePreview
from holdfast.model.job import Guarantee
from holdfast.model.table import HIDDEN, Column, Table
from holdfast.model.types import Type, from_spark, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLUSH_EVERY = 1000
"""How many lines may wait before they are shown."""


@options
class ConsoleOptions:
    """How rows are printed."""

    #: Print the rows; without it they are only counted.
    log_print_data: bool = option(True, key="log.print.data")
    #: Milliseconds that each writer waits after each row.
    log_print_delay_ms: int = option(0, key="log.print.delay.ms", at_least=0)


class Console(Sink[ConsoleOptions]):
    """Print rows to standard output.  A row that is printed cannot be taken back."""

    name = "Console"
    placeless = True
    example = "log.print.data = true"
    guarantee: ClassVar[Guarantee] = Guarantee.AT_LEAST_ONCE
    because = "a row that is printed cannot be taken back"

    @classmethod
    def destination(cls, options: ConsoleOptions, table: Table) -> str:
        """Name where lines are printed."""
        return "standard output"

    @classmethod
    def writing(cls, options: ConsoleOptions, table: Table) -> WritePreview:
        """Say that rows are shown, or counted."""
        return WritePreview(
            how="rows are printed" if options.log_print_data else "rows are counted"
        )

    def __init__(self, options: ConsoleOptions, context: PluginContext) -> None:
        super().__init__(options, context)
        self._printed: dict[tuple[str, int], int] = {}
        self._described: set[str] = set()

    def write(self, tables: Tables, staging: Staging) -> Sequence[Committable]:
        """Print every row; rows are numbered from 1 for each table and Spark partition."""
        return [Committable(1, str(r.table.path), self._print(r), 0, None) for r in tables]

    def _print(self, rows: Rows) -> int:
        path = str(rows.table.path)
        if path not in self._described:
            self._described.add(path)
            sys.stdout.write(f"output rowType: {row_type(rows)}\n")
        if not self.options.log_print_data:
            sys.stdout.flush()
            return rows.frame.count()
        count = 0
        for count, line in enumerate(self._lines(path, texts(rows)), start=1):
            sys.stdout.write(line)
            if count % FLUSH_EVERY == 0 or self.options.log_print_delay_ms:
                sys.stdout.flush()
        sys.stdout.flush()
        return count

    def _lines(self, path: str, frame: "DataFrame") -> Iterator[str]:
        # SeaTunnel's writers wait side by side; here one writer has the place of all of them.
        wait_s = self.options.log_print_delay_ms / 1000 / max(1, self.context.parallelism)
        for task, kind, text in frame.toLocalIterator(prefetchPartitions=True):
            number = self._printed.get((path, task), 0) + 1
            self._printed[path, task] = number
            yield (
                f"subtaskIndex={task}  rowIndex={number}:  SeaTunnelRow#tableId={path}"
                f" SeaTunnelRow#kind={kind} : {text}\n"
            )
            self.pause(wait_s)


def row_type(rows: Rows) -> str:
    """Return a table's columns as the header line names them."""
    return ", ".join(f"{c.name}<{_name(c.type)}>" for c in _columns(rows))


def texts(rows: Rows) -> "DataFrame":
    """Return (partition, kind, text) for each row."""
    parts = [shown(quote(c.name), c.type) for c in _columns(rows)]
    text = f"concat_ws(', ', {', '.join(parts)})" if parts else "''"
    return rows.frame.selectExpr("spark_partition_id()", rows.kind_sql, text)


def shown(sql: str, kind: Type, depth: int = 0) -> str:
    """Return a text expression for a value as Java prints it; a null becomes the text null."""
    return f"coalesce({_text(sql, kind, depth)}, 'null')"


def _text(sql: str, kind: Type, depth: int) -> str:
    item = f"v{depth}"
    match kind.kind:
        case "null":
            return "'null'"
        case "string":
            return sql
        case "array":
            inner = shown(item, kind.parts[0], depth + 1)
            return f"concat('[', array_join(transform({sql}, {item} -> {inner}), ', '), ']')"
        case "row":
            fields = [shown(f"{sql}.{quote(n)}", t, depth + 1) for n, t in kind.fields]
            return (
                f"IF({sql} IS NULL, NULL, concat('[', concat_ws(', ', {', '.join(fields)}), ']'))"
            )
        case "map":
            return f"to_json({sql})"
        case "bytes":
            return _bytes(sql, item)
        case "timestamp":
            return _clock(f"replace(CAST({sql} AS STRING), ' ', 'T')")
        case "timestamp_tz":
            clock = _clock(f"replace(CAST({sql} AS STRING), ' ', 'T')")
            return f"concat({clock}, date_format({sql}, 'XXX'))"
        case "time":
            return _clock(f"CAST({sql} AS STRING)")
        case _:
            return f"CAST({sql} AS STRING)"


def _bytes(sql: str, item: str) -> str:
    """Return an expression that lists bytes as the signed numbers Java has for them."""
    number = f"ascii(decode(substring({sql}, {item}, 1), 'ISO-8859-1'))"
    signed = f"CAST(IF({number} > 127, {number} - 256, {number}) AS STRING)"
    places = f"IF(length({sql}) = 0, array(), sequence(1, length({sql})))"
    return f"concat('[', array_join(transform({places}, {item} -> {signed}), ', '), ']')"


def _clock(text: str) -> str:
    """Return an expression for a time of day as Java writes it.

    Seconds are left out where they are 0, and a fraction has three or six digits.
    """
    fraction = f"substring_index({text}, '.', -1)"
    padded = f"rpad({fraction}, IF(length({fraction}) <= 3, 3, 6), '0')"
    whole = f"substring_index({text}, '.', 1)"
    return (
        f"CASE WHEN contains({text}, '.') THEN concat({whole}, '.', {padded})"
        f" WHEN endswith({text}, ':00') THEN left({text}, length({text}) - 3)"
        f" ELSE {text} END"
    )


def _columns(rows: Rows) -> list[Column]:
    """Return the columns with the types the DataFrame really has."""
    return [
        Column(f.name, from_spark(f.dataType.jsonValue()))
        for f in rows.frame.schema.fields
        if f.name not in HIDDEN
    ]


def _name(kind: Type) -> str:
    """Return a type as SeaTunnel prints it."""
    match kind.kind:
        case "decimal":
            return f"Decimal({kind.precision}, {kind.scale})"
        case "array":
            return f"ARRAY<{_name(kind.parts[0])}>"
        case "map":
            return f"Map<{_name(kind.parts[0])}, {_name(kind.parts[1])}>"
        case "row":
            return f"ROW<{','.join(f'{n} {_name(t)}' for n, t in kind.fields)}>"
        case _:
            return kind.kind.upper()
