"""Bring staged files into a Delta table: each commit once, whoever makes it and however often.

Files are first moved from the staging folder to where the table's files are, where no reader looks
for them until the log names them.  So whatever is still in a staging folder is not committed, and
may be removed.  Files that were moved and never named are left to the table's VACUUM.
"""

from collections.abc import Sequence

from holdfast.connect.sink import CommitId
from holdfast.connectors.delta.library import DeltaLog, same_columns
from holdfast.connectors.delta.log_tails import TailLog, Tails
from holdfast.connectors.delta.staged_files import DeltaFile, DeltaStaged
from holdfast.connectors.lake.location import Location, no_table
from holdfast.connectors.lake.moves import first_gone, lost, move
from holdfast.connectors.lake.prepare import Order, data_exists
from holdfast.errors import Unavailable, UserError

TRIES = 10


def commit(
    identifier: CommitId,
    place: Location,
    staged: Sequence[DeltaStaged],
    tails: Tails,
    order: Order | None = None,
) -> None:
    """Make what was staged for one table visible, and do before what the save modes say.

    A repeated identifier changes nothing, nor do save modes that their life has applied.
    """
    files = [file for one in staged for file in one.files]
    for _ in range(TRIES):
        log = _loaded(place) if order else tails.latest(place, identifier.user)
        if log.last(identifier.user) >= identifier.number:
            return
        due = order if order and log.last(order.mark) < 0 else None
        _check_columns(log, staged, due)
        _bring(place, identifier, files, tails)
        if _added(log, identifier, files, due):
            for one in staged:
                place.remove(one.folder)
            return
    raise Unavailable(
        f"Delta cannot commit to {place.url}: others always were faster, {TRIES} times.",
        code="sink.commit_conflicts",
    )


def check(
    identifier: CommitId, place: Location, staged: Sequence[DeltaStaged], tails: Tails
) -> None:
    """Raise UserError if the commit is not made, and files it needs are gone."""
    files = [file for one in staged for file in one.files]
    missing = first_gone(place, files)
    if missing and not _is_made(identifier, place, tails):
        raise lost("Delta", place, missing)


def _bring(place: Location, identifier: CommitId, files: Sequence[DeltaFile], tails: Tails) -> None:
    """Move files to where the table has them, unless somebody has."""
    missing = move(place, files)
    if missing and not _is_made(identifier, place, tails):
        raise lost("Delta", place, missing[0])


def _is_made(identifier: CommitId, place: Location, tails: Tails) -> bool:
    return tails.latest(place, identifier.user).last(identifier.user) >= identifier.number


def _loaded(place: Location) -> DeltaLog:
    log = DeltaLog.load(place)
    if log is None:
        raise no_table("Delta", place)
    return log


def _added(
    log: DeltaLog | TailLog, identifier: CommitId, files: Sequence[DeltaFile], order: Order | None
) -> bool:
    if isinstance(log, TailLog):
        return log.add(identifier, files)
    if order and order.mode == "empty" and not log.is_empty:
        raise data_exists("Delta", log.place.url)
    return log.add(identifier, files, order)


def _check_columns(
    log: DeltaLog | TailLog, staged: Sequence[DeltaStaged], order: Order | None
) -> None:
    schema = str(order.shape) if order and order.shape else log.schema
    for one in staged:
        if not same_columns(schema, one.columns) or log.partitions != one.partitions:
            raise UserError(
                f"Delta cannot commit to {log.place.url}: the table's columns or partitions were"
                " changed after rows were staged for it. Change them back, or start the job anew.",
                code="sink.schema_changed",
            )
