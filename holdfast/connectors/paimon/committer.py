"""Bring staged files into a Paimon table: each commit once, whoever makes it and however often.

Files are first moved from the staging folder to where the table's files are, where no reader looks
for them until a snapshot names them.  So whatever is still in a staging folder is not committed,
and may be removed.  Files that were moved and never named are left to those who remove orphan files
of the table.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from holdfast.connect.sink import CommitId
from holdfast.connectors.lake.location import Location, no_table
from holdfast.connectors.lake.moves import first_gone, lost, move
from holdfast.connectors.lake.prepare import Order, data_exists
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.staged_files import PaimonFile, PaimonStaged
from holdfast.connectors.paimon.table import PaimonTable
from holdfast.errors import OutcomeUnknown, Unavailable, UserError

TRIES = 10


def commit(
    identifier: CommitId, place: Location, staged: Sequence[PaimonStaged], order: Order | None
) -> None:
    """Make what was staged for one table visible, and do before what the save modes say.

    A repeated identifier changes nothing, nor do save modes that their life has applied.
    """
    files = [file for one in staged for file in one.files]
    for _ in range(TRIES):
        with _looking_again(identifier, place):
            table = _loaded(place)
            if table.has(identifier, files):
                return
            due = order if order and not table.is_marked(order.mark) else None
            anew = _shape(due)
            if due and due.mode == "empty" and not table.is_empty:
                raise data_exists("Paimon", place.url)
            _check_schema(table, staged, anew)
            if not _bring(identifier, place, files):
                return
            ready = table.remake(anew) if anew else table
            if ready and ready.add(identifier, files, due):
                for one in staged:
                    place.remove(one.folder)
                return
    raise Unavailable(
        f"Paimon cannot commit to {place.url}: others always were faster, {TRIES} times.",
        code="sink.commit_conflicts",
    )


def check(identifier: CommitId, place: Location, staged: Sequence[PaimonStaged]) -> None:
    """Raise UserError if the commit is not made, and files it needs are gone."""
    files = [file for one in staged for file in one.files]
    with _looking_again(identifier, place):
        missing = first_gone(place, files)
        if missing and not _loaded(place).has(identifier, files):
            raise lost("Paimon", place, missing)


@contextmanager
def _looking_again(identifier: CommitId, place: Location) -> Iterator[None]:
    """Say that nobody knows what came of it where the disk fails, or where the state that was
    looked at has expired meanwhile."""
    try:
        yield
    except OSError as error:
        raise OutcomeUnknown(
            f"Paimon cannot tell whether commit {identifier.number} to {place.url} was made:"
            f" {error}. It looks again.",
            code="sink.commit_unknown",
        ) from error


def _bring(identifier: CommitId, place: Location, files: Sequence[PaimonFile]) -> bool:
    """Move files to where the table has them, unless somebody has; False if all is done."""
    missing = move(place, files)
    if missing and not _loaded(place).has(identifier, files):
        raise lost("Paimon", place, missing[0])
    return not missing


def _loaded(place: Location) -> PaimonTable:
    table = PaimonTable.load(place)
    if table is None:
        raise no_table("Paimon", place)
    return table


def _shape(order: Order | None) -> PaimonSchema | None:
    """Return the columns of a table that is made anew."""
    return PaimonSchema(cast(dict[str, Any], order.shape)) if order and order.shape else None


def _check_schema(
    table: PaimonTable, staged: Sequence[PaimonStaged], anew: PaimonSchema | None
) -> None:
    """Raise UserError if files were written for other columns, keys, partitions or buckets."""
    now = anew or table.schema
    for one in staged:
        written = now if one.schema == now.number else table.schema_of(one.schema)
        same = written is not None and written.mark == one.mark
        if (
            not same
            or written is None
            or (written.partitions, written.keys) != (now.partitions, now.keys)
            or written.buckets != now.buckets
            or written.is_left_by(now)
        ):
            raise UserError(
                f"Paimon cannot commit to {table.place.url}: the table was made anew, or its keys,"
                " partitions or buckets were changed, after rows were staged for it. Start the job"
                " anew.",
                code="sink.schema_changed",
            )
