"""What is written where: the table, its columns and keys, and how rows get into it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.connect.placeholders import filled_for, resolve
from holdfast.connectors.committables import CommittableCheck, shown
from holdfast.connectors.jdbc.database import Name
from holdfast.connectors.jdbc.options import JdbcSinkOptions
from holdfast.connectors.jdbc.query import Insert, read_insert
from holdfast.connectors.jdbc.staged_rows import VERSION, StagedRows
from holdfast.errors import UserError
from holdfast.model.table import Table, TablePath

PARTS_MAX = 8
"""How many parts of a path are tried."""


@dataclass(frozen=True, slots=True)
class Target:
    """A table of the database, for one table of the stream."""

    table: Name
    sources: tuple[str, ...]
    """The stream's columns that are written, in order."""

    columns: tuple[str, ...]
    """The table's columns they go to; for a query, those it names."""

    keys: tuple[str, ...] = ()
    """The table's columns by which rows replace each other; none if rows are only added."""

    insert: Insert | None = None

    @property
    def ordered(self) -> bool:
        """Whether it matters which of two rows is the later one."""
        return bool(self.keys) or (self.insert is not None and self.insert.updates)

    @property
    def shown(self) -> str:
        """The table for messages."""
        return ".".join(self.table)


def target_of(options: JdbcSinkOptions, table: Table, names: tuple[str, ...]) -> Target:
    """Return where rows of a table with these columns go; `options` are those for this table."""
    insert = options.insert
    if insert is not None:
        return _by_query(insert, table, names)
    columns = tuple(options.spelled(n) for n in names)
    twice = sorted({c for c in columns if columns.count(c) > 1})
    if twice:
        raise UserError(
            f"Jdbc: columns of {table.path} become {', '.join(twice)} twice under field_ide ="
            f" {options.field_ide}. Rename them, or use ORIGINAL.",
            code="sink.columns",
        )
    return Target(_table(options, table), names, columns, _keys(options, table, names))


def _by_query(insert: Insert, table: Table, names: tuple[str, ...]) -> Target:
    if table.changelog:
        raise UserError(
            f"Jdbc: {table.path} brings updates and deletes, which query cannot apply."
            " Give 'table' and 'primary_keys' instead.",
            code="sink.changelog",
        )
    if any(insert.named):
        missing = [n for n in insert.named if n not in names]
        if missing:
            raise UserError(
                f"Jdbc: query wants :{', :'.join(missing)}, and {table.path} has no such column."
                f" It has {', '.join(names)}.",
                code="sink.columns",
            )
        return Target(insert.table, insert.named, insert.columns, (), insert)
    if len(insert.named) != len(names):
        raise UserError(
            f"Jdbc: query has {len(insert.named)} ? in it, and {table.path} has {len(names)}"
            f" columns: {', '.join(names)}. Each ? takes one, in order.",
            code="sink.columns",
        )
    return Target(insert.table, names, insert.columns, (), insert)


def _table(options: JdbcSinkOptions, table: Table) -> Name:
    """Return the table that `database` and `table` name."""
    parts = [p for p in (options.table or table.path.table).split(".") if p]
    address = options.address
    if not parts:
        raise UserError("Jdbc: 'table' is empty once its placeholders are filled in.")
    if address.kind == "postgresql":
        named = parts[-3] if len(parts) > 2 else options.database
        if named and named != address.database:
            raise UserError(
                f"Jdbc: database {named} is not that of url, {address.database}. A connection to"
                " PostgreSQL sees one database: name it in url.",
                code="sink.database",
            )
        return tuple(parts[-2:])
    database = parts[-2] if len(parts) > 1 else options.database
    return (database, parts[-1]) if database and database != address.database else (parts[-1],)


def check_target(
    check: CommittableCheck, options: JdbcSinkOptions, table: Name, query: str
) -> TablePath:
    """Refuse a table, or a statement, that the options do not give; return the stream's path.

    Raises ValueError where a statement cannot be read.
    """
    for path in _paths(check.committable.table):
        filled = resolve(options, Table(path))
        if options.generated:
            known = not query and table == _table(filled, Table(path))
        else:
            known = filled_for(options.query or "", path, query)
            known = known and table == read_insert(query, options.address.kind).table
        if known:
            return path
    if check.is_former:
        return TablePath.parse(check.committable.table)
    said = ".".join(table) + (f" by {query}" if query else "")
    raise check.refusal(f"{shown(said)} is not the table it writes")


def check_content(
    check: CommittableCheck, options: JdbcSinkOptions, staged_name: re.Pattern[str]
) -> StagedRows:
    """Read staged rows; refuse what was not staged for a table of the options."""
    content = check.content(StagedRows, VERSION)
    with check.sound("table"):
        check_target(check, options, content.table, content.query)
    said = shown(content.staged)
    check.require(bool(staged_name.fullmatch(content.staged)), f"{said} is no staging table")
    width, places = len(content.columns), tuple[int | None, ...]()
    if content.query:
        places = read_insert(content.query, options.address.kind).places
        width = len(places)
    fits = content.width == width and {*content.keys} <= {*content.columns}
    fits = fits and all(p is None or p < len(content.columns) for p in places)
    check.require(fits, "its columns, keys and values do not fit each other")
    return content


def _paths(text: str) -> Iterator[TablePath]:
    """Yield what a path may mean whose names may have dots in them."""
    yield TablePath.parse(text)
    parts = text.split(".")
    for cut in range(min(len(parts), PARTS_MAX)):
        above, name = parts[:cut], ".".join(parts[cut:])
        yield TablePath(name, ".".join(above) or None)
        if len(above) > 1:
            yield TablePath(name, ".".join(above[:-1]), above[-1])


def _keys(options: JdbcSinkOptions, table: Table, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns by which rows replace each other; none if they are only added."""
    keys = tuple(options.primary_keys or ()) or key_of(table)
    missing = [k for k in keys if k not in names]
    if missing:
        raise UserError(
            f"Jdbc: primary_keys has {', '.join(missing)}, and {table.path} has no such column."
            f" It has {', '.join(names)}.",
            code="sink.keys",
        )
    if table.changelog and not keys:
        raise UserError(
            f"Jdbc: {table.path} brings updates and deletes, and nothing says which columns tell"
            " its rows apart. Give primary_keys.",
            code="sink.keys",
        )
    if not options.enable_upsert and not table.changelog:
        return ()
    return tuple(options.spelled(k) for k in keys)


def key_of(table: Table) -> tuple[str, ...]:
    """Return the columns of the stream's own primary or unique key."""
    if table.primary_key and table.primary_key.columns:
        return table.primary_key.columns
    unique = [k for k in table.constraints if k.kind == "UNIQUE_KEY" and k.columns]
    return unique[0].columns if unique else ()
