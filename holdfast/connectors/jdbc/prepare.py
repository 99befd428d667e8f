"""What a table must be like before the first row, and what the first commit does to it.

A check of a job looks at the same before it runs: nothing is created then, and nothing is changed.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from holdfast.connect.placeholders import filled_for
from holdfast.connect.plugin import problems_of
from holdfast.connect.sink import Opening
from holdfast.connectors.committables import CommittableCheck, shown
from holdfast.connectors.jdbc.database import LEDGER, Database, FoundColumn, Name, Needs, Session
from holdfast.connectors.jdbc.exact import changes
from holdfast.connectors.jdbc.opening import VERSION, JdbcOrder, Mode, is_opened
from holdfast.connectors.jdbc.options import JdbcDataSaveMode, JdbcSinkOptions
from holdfast.connectors.jdbc.target import Target, check_target, key_of, target_of
from holdfast.connectors.save_modes import SchemaSaveMode, data_exists
from holdfast.errors import HoldfastError, UserError
from holdfast.model.table import Column, Table

MODES: dict[JdbcDataSaveMode, Mode] = {
    JdbcDataSaveMode.DROP_DATA: "clear",
    JdbcDataSaveMode.ERROR_WHEN_DATA_EXISTS: "empty",
    JdbcDataSaveMode.CUSTOM_PROCESSING: "script",
}
"""What the first commit does to a table that is not recreated."""


FAMILIES = {
    "numbers": ("int", "serial", "numeric", "decimal", "real", "double", "float", "money", "year"),
    "bytes": ("bytea", "blob", "binary"),
    "moments": ("date", "timestamp", "datetime"),
    "times of day": ("time",),
}
"""Database types by the words in their names; any other takes what its text says."""

KINDS = {
    "numbers": ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    "bytes": ("bytes", "binary_vector"),
    "moments": ("date", "timestamp", "timestamp_tz"),
    "times of day": ("time",),
    "truth values": ("boolean",),
    "lists and maps": ("array", "map", "row", "float_vector"),
}


def prepare_table(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target, table: Table,
    opening: Opening,
) -> JdbcOrder | None:  # fmt: skip
    """Make a table that is missing, check the columns, and return what the first commit does.

    Raises UserError where the job cannot run.
    """
    order = _order(database, options, target, table, opening.life) if options.generated else None
    if options.generated:
        find_target(database, session, options, target, table)
    opened = is_opened(session, opening.life, target.table)
    anew = order is not None and order.mode == "anew" and str(table.path) not in opening.earlier
    planned = find_new(database, options, table) if anew and not opened else ()
    check(database, session, options, target, table, planned)
    if order is None or not opening.new(table):
        return None
    if order.mode == "empty" and not opened:
        check_empty(database, session, target)
    return order


def check_empty(database: Database, session: Session, target: Target) -> None:
    """Raise UserError if a table has rows."""
    if session.run(f"SELECT 1 FROM {database.table(target.table)} LIMIT 1"):
        raise data_exists("Jdbc", target.shown)


def _order(
    database: Database, options: JdbcSinkOptions, target: Target, table: Table, life: str
) -> JdbcOrder | None:
    custom = options.data_save_mode is JdbcDataSaveMode.CUSTOM_PROCESSING
    statements = (options.custom_sql or "",) if custom else ()
    mode = _mode(options)
    if mode == "anew":
        statements = (_create_statement(database, options, target, table), *statements)
    return JdbcOrder(target.table, life, mode, statements) if mode else None


def check_order(check: CommittableCheck, options: JdbcSinkOptions, database: Database) -> JdbcOrder:
    """Read a save mode; refuse one that would do anything but what the options say."""
    order = check.content(JdbcOrder, VERSION)
    check.of_life(order.life)
    with check.sound("table"):
        path = check_target(check, options, order.table, "")
    check.require_option(options.generated, "there are no save modes where query says what rows do")
    check.mode(order.mode, _mode(options))
    create, *scripts = order.statements if order.mode == "anew" else ("", *order.statements)
    custom = options.data_save_mode is JdbcDataSaveMode.CUSTOM_PROCESSING
    script = options.custom_sql or ""
    same = len(scripts) == custom and all(filled_for(script, path, s) for s in scripts)
    check.require_option(same, f"the statements {shown(scripts)} are not custom_sql")
    if order.mode == "anew":
        makes = _makes(database, order.table, create)
        check.require(makes, f"the statement {shown(create)} does not only make the table")
    return order


def _mode(options: JdbcSinkOptions) -> Mode | None:
    """Return what the first commit does to a table; None if it only writes rows."""
    if options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA:
        return "anew"
    return MODES.get(options.data_save_mode)


def _makes(database: Database, table: Name, statement: str) -> bool:
    """Say whether a statement is one of `_create_statement`, and nothing more."""
    mark = re.escape(database.quote("x")[0])
    name = f"{mark}(?:[^{mark}\0]|{mark}{mark})+{mark}"
    kind = r"[a-z]+(?: precision)?(?:\(\d+(?:,\d+)?\))?(?: CHARACTER SET \w+ COLLATE \w+)?"
    column = rf"{name} {kind}(?:\[\])*(?: NOT)?(?: NULL)?"
    line = rf"(?:{column}|(?:PRIMARY KEY|UNIQUE) \({name}(?:, {name})*\))"
    begins = re.escape(f"CREATE TABLE {database.table(table)} (")
    return re.fullmatch(rf"{begins}{line}(?:, {line})*\)", statement) is not None


def find_new(database: Database, options: JdbcSinkOptions, table: Table) -> list[FoundColumn]:
    """Return the columns of a table that is yet to be created."""
    lines = _columns(database, options, table)
    return [FoundColumn(name, kind, not required, False, False) for name, kind, required in lines]


def find_target(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target, table: Table
) -> list[FoundColumn]:
    """Return the target's columns; make the table if it is missing and the mode says so."""
    found = database.find_columns(session, target.table)
    if found or not (options.generated and options.schema_save_mode.creates):
        return found
    with database.alone(session):
        if not database.find_columns(session, target.table):
            _create(database, session, options, target, table)
    return database.find_columns(session, target.table)


def check(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target, table: Table,
    planned: Sequence[FoundColumn] = (),
) -> None:  # fmt: skip
    """Raise UserError with every difference between the stream and the table.

    `planned` are the columns of a table that is yet to be created in its place.
    """
    there = planned or database.find_columns(session, target.table)
    found = {c.name: c for c in there}
    if not found:
        raise UserError(
            f"Jdbc cannot write to {target.shown}: {database.address.shown} has no such table, and"
            f" schema_save_mode is {options.schema_save_mode}. Create it, or use"
            " CREATE_SCHEMA_WHEN_NOT_EXIST.",
            code="sink.schema_missing",
        )
    if not planned:
        database.check_table(session, target.table)
    differences = _differences(target, table, found)
    if differences:
        listed = "\n".join(f"  - {line}" for line in differences)
        raise UserError(
            f"Jdbc cannot write {table.path} to table {target.shown} of"
            f" {database.address.shown}:\n{listed}",
            code="sink.schema_differs",
        )
    if target.keys:
        new = [frozenset(u) for u in _unique(options, table)]
        _check_keys(target, new if planned else database.unique_keys(session, target.table))


def _check_keys(target: Target, unique: Sequence[frozenset[str]]) -> None:
    if frozenset(target.keys) in unique:
        return
    there = "; ".join(", ".join(sorted(u)) for u in unique) or "none"
    keys = ", ".join(target.keys)
    raise UserError(
        f"Jdbc cannot update rows of {target.shown} by {keys}: the table has no primary key or"
        f" unique index on just these columns (it has: {there}). Create one, change primary_keys,"
        " or set enable_upsert = false if rows are only added.",
        code="sink.keys",
    )


def _differences(target: Target, table: Table, found: dict[str, FoundColumn]) -> list[str]:
    lines = []
    columns = target.columns or tuple(found)
    kinds = {c.name: c for c in table.columns}
    for name in columns:
        if name not in found:
            lines.append(f"column {name} is not in the table, which has {', '.join(found)}")
        elif found[name].computed:
            lines.append(f"column {name} is computed by the database and cannot be written")
    lines += [
        f"column {c.name} of the table may not be null and has no default; the stream has no such"
        " column"
        for c in found.values()
        if c.name not in columns and not c.nullable and not c.filled and not c.computed
    ]
    if target.insert is None:
        pairs = zip(target.sources, target.columns, strict=True)
        lines += [
            f"column {column} is {kinds[source].type} in the stream and {found[column].type} in"
            " the table"
            for source, column in pairs
            if source in kinds and column in found and not _fits(kinds[source], found[column])
        ]
    return lines


def _fits(column: Column, found: FoundColumn) -> bool:
    """Say whether values may fit; a database that finds one that does not will say so."""
    kind = column.type.kind
    have = next((family for family, kinds in KINDS.items() if kind in kinds), None)
    name = found.type.lower()
    want = next((f for f, words in FAMILIES.items() if any(w in name for w in words)), None)
    if name.endswith("[]") and kind == "array":
        return not changes(column.type.parts[0], name.removesuffix("[]"))
    if have is None or want is None or name.endswith("[]"):
        return True
    return have == want or (have == "truth values" and want == "numbers")


def _create(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target, table: Table
) -> None:
    """Make the table with the columns and keys of the stream."""
    database.create_around(session, target.table)
    session.run(_create_statement(database, options, target, table))


def _create_statement(
    database: Database, options: JdbcSinkOptions, target: Target, table: Table
) -> str:
    lines = [
        f"{database.quote(name)} {kind}{' NOT NULL' if required else ''}"
        for name, kind, required in _columns(database, options, table)
    ]
    for at, columns in enumerate(_unique(options, table)):
        word = "PRIMARY KEY" if at == 0 and _keys(options, table) else "UNIQUE"
        lines.append(f"{word} ({', '.join(map(database.quote, columns))})")
    return f"CREATE TABLE {database.table(target.table)} ({', '.join(lines)})"


def _columns(
    database: Database, options: JdbcSinkOptions, table: Table
) -> Iterator[tuple[str, str, bool]]:
    """Yield name and type of each column of a new table, and whether it takes no null."""
    keys = _keys(options, table)
    indexed = {c for columns in _unique(options, table) for c in columns}
    for column in table.columns:
        name = options.spelled(column.name)
        kind = database.type_of(column, name in indexed)
        required = column.name in keys or not column.nullable
        yield name, kind.removesuffix(" NULL") if required else kind, required


def _keys(options: JdbcSinkOptions, table: Table) -> tuple[str, ...]:
    return tuple(options.primary_keys or ()) or key_of(table)


def _unique(options: JdbcSinkOptions, table: Table) -> list[tuple[str, ...]]:
    """Return the columns of each index that a new table gets; the primary key comes first."""
    if not options.create_index:
        return []
    keys = _keys(options, table)
    others = [k.columns for k in table.constraints if k.kind == "UNIQUE_KEY" and k.columns]
    listed = [keys, *(columns for columns in others if set(columns) != set(keys))]
    return [tuple(options.spelled(c) for c in columns) for columns in listed if columns]


Asked = tuple[JdbcSinkOptions, Table]


def look_at(database: Database, asked: Sequence[Asked]) -> Iterator[str]:
    """Log in, and yield a sentence for each problem that a job with these tables would meet."""
    database.check_libraries()
    try:
        session = database.open("check")
    except HoldfastError as error:
        raise type(error)(f"Jdbc: {error}", code=error.code) from error
    try:
        ledger = bool(database.find_columns(session, (LEDGER,)))
        for said in database.missing_rights(session, Needs(ledger)):
            yield f"Jdbc cannot write to {database.address.shown}: {said}"
        for options, table in asked:
            yield from _look_at(database, session, options, table, ledger)
    finally:
        session.close()


def _look_at(
    database: Database, session: Session, options: JdbcSinkOptions, table: Table, ledger: bool
) -> Iterator[str]:
    if not table.columns and not options.generated:
        return  # what a query takes is not known
    target = target_of(options, table, table.names or tuple(options.primary_keys or ()))
    about = f"Jdbc cannot write to {target.shown} of {database.address.shown}"
    there = blind = False
    try:
        there = bool(database.find_columns(session, target.table))
    except UserError as error:  # no right to look into its schema
        blind = True
        yield f"{about}: {error}"
    makes = options.generated and options.schema_save_mode.creates
    anew = options.generated and options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA
    if table.columns and not blind and (there or not makes):
        planned = find_new(database, options, table) if anew else ()
        yield from problems_of(partial(check, database, session, options, target, table, planned))
    needs = _needs(database, options, target, table, there, ledger)
    missing = list(database.missing_rights(session, needs))
    for said in missing:
        yield f"{about}: {said}"
    empty = options.data_save_mode is JdbcDataSaveMode.ERROR_WHEN_DATA_EXISTS and not anew
    if there and options.generated and empty and not missing:
        yield from problems_of(partial(check_empty, database, session, target))


def _needs(
    database: Database, options: JdbcSinkOptions, target: Target, table: Table, there: bool,
    ledger: bool,
) -> Needs:  # fmt: skip
    """Return what a job does to a table: neither more nor less than it must be allowed to."""
    generated = options.generated
    makes = options.schema_save_mode.creates and not there
    makes |= options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA
    others = set(target.columns) - set(target.keys)
    updates = target.insert.updates if target.insert else bool(target.keys) and bool(others)
    deletes = table.changelog and bool(target.keys)
    reads = deletes or (database.upserts_read and target.ordered)
    reads |= generated and options.data_save_mode is JdbcDataSaveMode.ERROR_WHEN_DATA_EXISTS
    wanted = {"INSERT": True, "SELECT": reads, "UPDATE": updates, "DELETE": deletes}
    return Needs(
        ledger, target.table, there, tuple(right for right, want in wanted.items() if want),
        target.columns, generated and options.data_save_mode is JdbcDataSaveMode.DROP_DATA,
        generated and makes,
    )  # fmt: skip
