"""What happens to a table once, before the first row; and whether the stream fits into it."""

from holdfast.connectors.jdbc.database import Database, Found, Session
from holdfast.connectors.jdbc.options import DataSaveMode, JdbcSinkOptions, SchemaSaveMode
from holdfast.connectors.jdbc.target import Target, key_of
from holdfast.errors import UserError
from holdfast.model.table import Column, Table

CREATES = (SchemaSaveMode.RECREATE_SCHEMA, SchemaSaveMode.CREATE_SCHEMA_WHEN_NOT_EXIST)

FAMILIES = {
    "numbers": ("int", "serial", "numeric", "decimal", "real", "double", "float", "money", "year"),
    "bytes": ("bytea", "blob", "binary"),
    "times": ("date", "time"),
}
"""Database types by the words in their names; any other takes what its text says."""

KINDS = {
    "numbers": ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    "bytes": ("bytes", "binary_vector"),
    "times": ("date", "time", "timestamp", "timestamp_tz"),
    "truth values": ("boolean",),
    "lists and maps": ("array", "map", "row", "float_vector"),
}


def prepare_table(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target, table: Table
) -> None:
    """Apply the save modes and check the columns.  Raises UserError where the job cannot run."""
    with database.alone(session):
        if options.generated:
            _apply_schema_mode(database, session, options, target, table)
            _apply_data_mode(database, session, options, target)
        check(database, session, options, target, table)


def find_target(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target, table: Table
) -> list[Found]:
    """Return the target's columns; make the table if it is missing and the mode says so."""
    found = database.find_columns(session, target.table)
    if found or not (options.generated and options.schema_save_mode in CREATES):
        return found
    with database.alone(session):
        if not database.find_columns(session, target.table):
            _create(database, session, options, target, table)
    return database.find_columns(session, target.table)


def check(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target, table: Table
) -> None:
    """Raise UserError with every difference between the stream and the table."""
    found = {c.name: c for c in database.find_columns(session, target.table)}
    if not found:
        raise UserError(
            f"Jdbc cannot write to {target.shown}: {database.address.shown} has no such table, and"
            f" schema_save_mode is {options.schema_save_mode}. Create it, or use"
            " CREATE_SCHEMA_WHEN_NOT_EXIST.",
            code="sink.schema_missing",
        )
    database.check_table(session, target.table)
    differences = _differences(target, table, found)
    if differences:
        listed = "\n".join(f"  - {line}" for line in differences)
        raise UserError(
            f"Jdbc cannot write {table.path} to table {target.shown} of"
            f" {database.address.shown}:\n{listed}",
            code="sink.schema_differs",
        )
    _check_keys(database, session, target)


def _check_keys(database: Database, session: Session, target: Target) -> None:
    if not target.keys:
        return
    unique = database.unique_keys(session, target.table)
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


def _differences(target: Target, table: Table, found: dict[str, Found]) -> list[str]:
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


def _fits(column: Column, found: Found) -> bool:
    """Say whether values may fit; a database that finds one that does not will say so."""
    kind = column.type.kind
    have = next((family for family, kinds in KINDS.items() if kind in kinds), None)
    name = found.type.lower()
    want = next((f for f, words in FAMILIES.items() if any(w in name for w in words)), None)
    if have is None or want is None or name.endswith("[]"):
        return True
    return have == want or (have == "truth values" and want == "numbers")


def _apply_schema_mode(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target, table: Table
) -> None:
    mode = options.schema_save_mode
    exists = bool(database.find_columns(session, target.table))
    if mode is SchemaSaveMode.RECREATE_SCHEMA and exists:
        session.run(f"DROP TABLE {database.table(target.table)}")
        exists = False
    if not exists and mode in CREATES:
        _create(database, session, options, target, table)


def _apply_data_mode(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target
) -> None:
    name = database.table(target.table)
    match options.data_save_mode:
        case DataSaveMode.DROP_DATA if database.find_columns(session, target.table):
            session.run(f"TRUNCATE TABLE {name}")
        case DataSaveMode.CUSTOM_PROCESSING:
            assert options.custom_sql is not None
            database.run_script(session, options.custom_sql)
        case DataSaveMode.ERROR_WHEN_DATA_EXISTS if database.find_columns(
            session, target.table
        ) and session.run(f"SELECT 1 FROM {name} LIMIT 1"):
            raise UserError(
                f"Jdbc will not write to {target.shown}: there are rows in it, and data_save_mode"
                " is ERROR_WHEN_DATA_EXISTS. Empty it, or choose APPEND_DATA or DROP_DATA.",
                code="sink.data_exists",
            )


def _create(
    database: Database, session: Session, options: JdbcSinkOptions, target: Target, table: Table
) -> None:
    """Make the table with the columns and keys of the stream."""
    database.create_around(session, target.table)
    keys = tuple(options.primary_keys or ()) or key_of(table)
    unique = [k.columns for k in table.constraints if k.kind == "UNIQUE_KEY" and k.columns]
    indexed = (
        {*keys, *(c for columns in unique for c in columns)} if options.create_index else {*()}
    )
    lines = []
    for column in table.columns:
        name = database.quote(options.spelled(column.name))
        kind = database.type_of(column, column.name in indexed)
        required = column.name in keys or not column.nullable
        lines.append(f"{name} {kind.removesuffix(' NULL') if required else kind}")
        if required:
            lines[-1] += " NOT NULL"
    if options.create_index:
        constraints = [("PRIMARY KEY", keys)] if keys else []
        constraints += [("UNIQUE", columns) for columns in unique if set(columns) != set(keys)]
        for word, columns in constraints:
            listed = ", ".join(database.quote(options.spelled(c)) for c in columns)
            lines.append(f"{word} ({listed})")
    session.run(f"CREATE TABLE {database.table(target.table)} ({', '.join(lines)})")
