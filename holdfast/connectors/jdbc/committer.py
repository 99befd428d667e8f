"""Bring staged rows into their tables: one transaction with a row of the ledger.

The ledger has a row for each user with the number of its last commit.  A commit locks that row, so
that committers follow each other, and does nothing if its number is there already: a committer that
repeats what another has committed, however late, changes nothing.  After a broken connection the
same question is asked again; it waits for the old transaction to end, one way or the other.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby

from holdfast.connect.sink import CommitId, Leftovers
from holdfast.connectors.jdbc.database import LEDGER, Database, Session, StagedTable
from holdfast.connectors.jdbc.opening import JdbcOrder, key_of, run_before, run_inside
from holdfast.connectors.jdbc.query import Insert, read_insert
from holdfast.connectors.jdbc.staged_rows import CHUNK, ORDER, PUT, StagedRows
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable, UserError

log = logging.getLogger("holdfast")

TOGETHER = 32
"""How many staging tables one statement reads; servers have a limit."""

Counted = tuple[StagedRows, int]
"""Staged rows, and how many there must be."""


def commit(
    database: Database,
    identifier: CommitId,
    staged: Sequence[Counted],
    orders: Sequence[JdbcOrder],
    attempts: int,
    check: Callable[[Sequence[StagedTable]], None],
) -> None:
    """Make staged rows visible, unless that has been done, and remove the staging tables.

    Before, do what the save modes say, unless their incarnation has done that.  `check` looks
    at the staging tables that are there, and may refuse some.
    """
    for left in reversed(range(attempts)):
        try:
            with database.session("commit") as session:
                if staged:
                    check(database.find_stages(session))
                _commit(database, session, identifier, staged, orders)
                _forget(database, session, [content for content, _ in staged])
            return
        except (Unavailable, OutcomeUnknown):
            # The next try learns from the ledger how this one ended.
            if not left:
                raise


def drop(database: Database, contents: Iterable[StagedRows]) -> None:
    """Remove staging tables."""
    with database.session("sweep") as session:
        for content in contents:
            database.drop_stage(session, content.staged)


def sweep(database: Database, leftovers: Leftovers) -> None:
    """Remove the staging tables that leftovers include."""
    with database.session("sweep") as session:
        for staged in database.find_stages(session):
            if leftovers.include(staged.owner):
                database.drop_stage(session, staged.table)


def _commit(
    database: Database, session: Session, identifier: CommitId, staged: Sequence[Counted],
    orders: Sequence[JdbcOrder],
) -> None:  # fmt: skip
    key = key_of(identifier.user)
    database.create_ledger(session)
    for user in (identifier.user, *(order.user for order in orders)):
        database.open_ledger(session, key_of(user), user)
    check = partial(_check_there, database, session, identifier, staged)
    run_before(database, session, identifier, orders, check)
    session.run("BEGIN")
    ((number, watermark),) = session.run(
        f"SELECT number, watermark FROM {LEDGER} WHERE id = %s FOR UPDATE", (key,)
    )
    if number >= identifier.number:
        session.run("ROLLBACK")
        return
    check()
    run_inside(database, session, orders)
    for _, group in groupby(staged, key=lambda one: one[0].shape):
        _apply(database, session, list(group))
    known = [w for w in (watermark, identifier.watermark) if w is not None]
    session.run(
        f"UPDATE {LEDGER} SET number = %s, watermark = %s, committed_at = CURRENT_TIMESTAMP"
        " WHERE id = %s",
        (identifier.number, max(known, default=None), key),
    )
    try:
        session.run("COMMIT")
    except Unavailable as error:
        raise OutcomeUnknown(
            f"Commit {identifier.number} may have reached {database.address.shown} or not: {error}",
            code="sink.outcome_unknown",
        ) from error


def _check_there(
    database: Database, session: Session, identifier: CommitId, staged: Sequence[Counted]
) -> None:
    there = {s.table for s in database.find_stages(session)}
    gone = [content for content, _ in staged if not there.issuperset(content.tables)]
    if gone:
        raise UserError(
            f"Commit {identifier.number} needs staging tables that {database.address.shown} no"
            f" longer has: {', '.join(c.staged for c in gone)}, with rows for"
            f" {', '.join(sorted({'.'.join(c.table) for c in gone}))}. Somebody has dropped them."
            " Start the job from an earlier savepoint.",
            code="sink.staged_missing",
        )


def _apply(database: Database, session: Session, staged: Sequence[Counted]) -> None:
    first = staged[0][0]
    if first.query:
        for content, rows in staged:
            _check_count(session, content, rows)
            session.run(_by_query(database, content))
    elif first.keys:
        for content, rows in staged:
            _check_count(session, content, rows)
        for at in range(0, len(staged), TOGETHER):
            for statement in _changes(database, [c for c, _ in staged[at : at + TOGETHER]]):
                session.run(statement)
    else:
        for content, rows in staged:
            session.run(_append(database, content))
            _check_equal(content, rows, session.affected)


def _check_count(session: Session, content: StagedRows, rows: int) -> None:
    ((found,),) = session.run(f"SELECT count(*) {_from(content)}")
    _check_equal(content, rows, found)


def _check_equal(content: StagedRows, rows: int, found: int) -> None:
    if rows != found:
        # A server that acknowledges before it has written to disk forgets rows when it crashes.
        raise UserError(
            f"Staging table {content.staged} for {'.'.join(content.table)} has {found} rows of"
            f" {rows} that were written. Does the server sync its log to disk at each commit?"
            " Start the job from an earlier savepoint.",
            code="sink.staged_missing",
        )


def _append(database: Database, content: StagedRows) -> str:
    names = ", ".join(database.quote(c) for c in content.columns)
    values = ", ".join(f"c{n}" for n in range(content.width))
    return f"INSERT INTO {database.table(content.table)} ({names}) SELECT {values} {_from(content)}"


def _changes(database: Database, contents: Sequence[StagedRows]) -> Iterator[str]:
    """Yield what makes the last change of each key the one that is seen."""
    first, target = contents[0], database.table(contents[0].table)
    numbers = {name: f"c{n}" for n, name in enumerate(first.columns)}
    last = _last([numbers[k] for k in first.keys], contents)
    if first.deletes:
        same = " AND ".join(f"t.{database.quote(k)} = d.{numbers[k]}" for k in first.keys)
        yield database.delete_using(target, f"{last} AND {PUT} = 0", same)
    names = [database.quote(c) for c in first.columns]
    keys = [database.quote(k) for k in first.keys]
    tail = database.upsert_tail(keys, [n for n in names if n not in keys])
    values = ", ".join(numbers.values())
    yield (
        f"INSERT INTO {target} ({', '.join(names)}) SELECT {values} FROM"
        f" ({last} AND {PUT} = 1) d {'WHERE TRUE ' if tail else ''}{tail}"
    )


def _last(keys: Sequence[str], contents: Sequence[StagedRows]) -> str:
    """Return a query for the last change of each key; a WHERE may continue with AND."""
    values = ", ".join(f"c{n}" for n in range(contents[0].width))
    parts = " UNION ALL ".join(
        f"SELECT {n} AS slice, {ORDER}, {PUT}, {values} {_from(c)}" for n, c in enumerate(contents)
    )
    numbered = (
        f"SELECT s.*, row_number() OVER (PARTITION BY {', '.join(keys)}"
        f" ORDER BY slice DESC, {ORDER} DESC, {PUT} DESC) AS nth FROM ({parts}) s"
    )
    return f"SELECT {PUT}, {values} FROM ({numbered}) n WHERE nth = 1"


def _by_query(database: Database, content: StagedRows) -> str:
    insert = read_insert(content.query, database.address.kind)
    columns = [f"c{n}" for n in range(content.width)]
    rows = _from(content)
    if insert.conflict:
        # One statement may not update a row twice: of rows with one key, the last one counts.
        keys = ", ".join(_conflict_columns(insert, content))
        rows = f"FROM (SELECT DISTINCT ON ({keys}) * {rows} ORDER BY {keys}, {ORDER} DESC) d"
    elif insert.updates:
        rows = f"{rows} ORDER BY {ORDER}"
    return insert.select_from(rows, columns)


def _conflict_columns(insert: Insert, content: StagedRows) -> list[str]:
    places = [content.columns[p] if p is not None else "" for p in insert.places]
    missing = [name for name in insert.conflict if name not in places]
    if missing:
        raise UserError(
            f"Jdbc: query has ON CONFLICT ({', '.join(insert.conflict)}), and there is no ? for"
            f" {', '.join(missing)}. Give 'table' and 'primary_keys' instead.",
            code="sink.query",
        )
    return [f"c{places.index(name)}" for name in insert.conflict]


def _from(content: StagedRows) -> str:
    if content.apart:
        whole = " UNION ALL ".join(f"SELECT * FROM {table}" for table in content.tables)
        return f"FROM ({whole}) w"
    numbers = ", ".join(map(str, map(int, content.chunks)))
    return f"FROM {content.staged} WHERE {CHUNK} IN ({numbers})"


def _forget(database: Database, session: Session, contents: Sequence[StagedRows]) -> None:
    """Remove staging tables whose rows are in; what cannot be removed now is swept up later."""
    for content in contents:
        try:
            database.drop_stage(session, content.staged)
        except HoldfastError as error:
            log.warning("Staging table %s stays for now: %s", content.staged, error)
            return
