"""Look at a database for a job that is yet to run; nothing is made and nothing is changed."""

from collections.abc import Iterator, Sequence
from functools import partial

from holdfast.connect.plugin import problems_of
from holdfast.connectors.jdbc.database import LEDGER, Database, Needs, Session
from holdfast.connectors.jdbc.options import DataSaveMode, JdbcSinkOptions, SchemaSaveMode
from holdfast.connectors.jdbc.prepare import CREATES, check, check_empty, find_new
from holdfast.connectors.jdbc.target import Target, target_of
from holdfast.errors import HoldfastError, UserError
from holdfast.model.table import Table

Asked = tuple[JdbcSinkOptions, Table]


def look_at(database: Database, asked: Sequence[Asked]) -> Iterator[str]:
    """Log in, and yield a sentence for each problem that a job with these tables would meet."""
    database.check_libraries()
    try:
        session = database.open("check")
    except HoldfastError as error:
        said = str(error).rstrip(".? ")
        raise type(error)(f"Jdbc: {said}. {database.mend(error)}", code=error.code) from error
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
        return  # what a query takes cannot be told
    target = target_of(options, table, table.names or tuple(options.primary_keys or ()))
    about = f"Jdbc cannot write to {target.shown} of {database.address.shown}"
    there = blind = False
    try:
        there = bool(database.find_columns(session, target.table))
    except UserError as error:  # no right to look into its schema
        blind = True
        yield f"{about}: {error}"
    makes = options.generated and options.schema_save_mode in CREATES
    anew = options.generated and options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA
    if table.columns and not blind and (there or not makes):
        planned = find_new(database, options, table) if anew else ()
        yield from problems_of(partial(check, database, session, options, target, table, planned))
    needs = _needs(database, options, target, table, there, ledger)
    missing = list(database.missing_rights(session, needs))
    for said in missing:
        yield f"{about}: {said}"
    empty = options.data_save_mode is DataSaveMode.ERROR_WHEN_DATA_EXISTS and not anew
    if there and options.generated and empty and not missing:
        yield from problems_of(partial(check_empty, database, session, target))


def _needs(
    database: Database, options: JdbcSinkOptions, target: Target, table: Table, there: bool,
    ledger: bool,
) -> Needs:  # fmt: skip
    """Return what a job does to a table: neither more nor less than it must be allowed to."""
    generated = options.generated
    makes = options.schema_save_mode in CREATES and not there
    makes |= options.schema_save_mode is SchemaSaveMode.RECREATE_SCHEMA
    others = set(target.columns) - set(target.keys)
    updates = target.insert.updates if target.insert else bool(target.keys) and bool(others)
    deletes = table.changelog and bool(target.keys)
    reads = deletes or (database.upserts_read and target.ordered)
    reads |= generated and options.data_save_mode is DataSaveMode.ERROR_WHEN_DATA_EXISTS
    wanted = {"INSERT": True, "SELECT": reads, "UPDATE": updates, "DELETE": deletes}
    return Needs(
        ledger, target.table, there, tuple(right for right, want in wanted.items() if want),
        target.columns, generated and options.data_save_mode is DataSaveMode.DROP_DATA,
        generated and makes,
    )  # fmt: skip
