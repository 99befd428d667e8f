"""Bring staged files into an Iceberg table: each commit once, whichever process makes it, however
often, and tag the snapshots of savepoints.

Files are first moved from the staging folder to where the table's files are, where no reader looks
for them until a snapshot names them.  So a file that is still in a staging folder is not committed,
and may be removed.  Files that were moved and never named are left to whatever removes the table's
orphan files.

A tag keeps the table as a savepoint's commit left it from expiring.  A tag that exists is moved
only if it is on a snapshot of the same user.
"""

import logging
from collections.abc import Callable, Sequence

from holdfast.connect.sink import CommitId
from holdfast.connectors.iceberg.staged_files import IcebergFile, IcebergStaged
from holdfast.connectors.iceberg.table import IcebergTable
from holdfast.connectors.lake.commits import TRIES, first_gone, lost, move, outrun, tag_of
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.prepare import TableOrder
from holdfast.connectors.save_modes import data_exists
from holdfast.errors import Unavailable, UserError

Load = Callable[[], IcebergTable]

BETWEEN = "\n"
"""What no name of a table has in it."""


def where_text(name: Sequence[str], location: str) -> str:
    """Return a table's name, piece by piece, and its place, as one text."""
    return BETWEEN.join((*name, location))


def where_of(text: str) -> tuple[list[str], str]:
    """Return the name and the place of a table that `where_text` has joined."""
    *name, location = text.split(BETWEEN)
    return name, location


def commit(
    identifier: CommitId,
    load: Load,
    place: Location,
    staged: Sequence[IcebergStaged],
    order: TableOrder | None,
) -> None:
    """Make what was staged for one table visible, and do before what the save modes say.

    A repeated identifier changes nothing, nor do save modes that their incarnation has applied.
    """
    files = [file for one in staged for file in one.files]
    for _ in range(TRIES):
        table = load()
        if table.last(identifier.user) >= identifier.number:
            return
        due = order if order and table.last(order.mark) < 0 else None
        if due and due.mode == "empty" and not table.is_empty:
            raise data_exists("Iceberg", ".".join(table.name))
        _check_columns(table.anew(due.shape) if due and due.shape else table, staged)
        if not _bring(identifier, load, place, files):
            return
        by_name = not all(one.numbered for one in staged)
        location = staged[0].location if staged else table.location
        if table.add(identifier, files, location, by_name=by_name, order=due):
            for one in staged:
                place.remove(one.folder)
            return
    raise outrun("Iceberg", place.url)


def check(
    identifier: CommitId,
    load: Load,
    place: Location,
    staged: Sequence[IcebergStaged],
    order: TableOrder | None,
) -> None:
    """Raise UserError if the commit is yet to come, and files it needs are gone."""
    files = [file for one in staged for file in one.files]
    missing = first_gone(place, files)
    if missing and load().last(identifier.user) < identifier.number:
        raise lost("Iceberg", place, missing)


def _bring(identifier: CommitId, load: Load, place: Location, files: Sequence[IcebergFile]) -> bool:
    """Move files to where the table has them, unless somebody has; False if all is done."""
    missing = move(place, files)
    if missing and load().last(identifier.user) < identifier.number:
        raise lost("Iceberg", place, missing[0])
    return not missing


def _check_columns(table: IcebergTable, staged: Sequence[IcebergStaged]) -> None:
    for one in staged:
        there = table.fields(by_name=not one.numbered)
        same = all(there.get(number) == said for number, said in one.fields.items())
        if not same or table.spec != one.spec:
            raise UserError(
                f"Iceberg cannot commit to {'.'.join(one.table)}: the table's columns or partitions"
                " were changed after rows were staged for it. Change them back, or start the job"
                " again.",
                code="sink.schema_changed",
            )


log = logging.getLogger("holdfast")


def tag_savepoint(load: Callable[[], IcebergTable | None], identifier: CommitId, job: str) -> None:
    """Tag the snapshot of a savepoint's commit in one table, unless it has its tag.

    Where nothing was staged since, that is the snapshot of the user's last commit before.
    """
    tag = tag_of(identifier, job)
    for _ in range(TRIES):
        table = load()
        snapshot = table.snapshot_of(identifier.user, identifier.number) if table else None
        if table is None or snapshot is None:
            return  # this sink has not committed to it
        there = table.tagged(tag)
        if there and there[0] == snapshot:
            return
        if there and there[1] != identifier.user:
            log.warning(
                "Iceberg: %s has a tag %s of somebody else; it stays, and the savepoint has none.",
                ".".join(table.name), tag,
            )  # fmt: skip
            return
        if table.tag(snapshot, tag):
            return
    raise Unavailable(
        f"Iceberg cannot set the tag {tag}: lost {TRIES} commit races in a row.",
        code="sink.tag_conflicts",
    )
