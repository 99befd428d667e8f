"""Bring staged files into a Paimon table: each commit once, whichever process makes it, however
often, and tag the snapshots of savepoints.

Files are first moved from the staging folder to where the table's files are, where no reader looks
for them until a snapshot names them.  So a file that is still in a staging folder is not committed,
and may be removed.  Files that were moved and never named are left to whatever removes the table's
orphan files.

A tag is a copy of its snapshot in the folder `tag`; it keeps the snapshot from expiring.
"""

import logging
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from holdfast.connect.sink import CommitId
from holdfast.connectors.lake.commits import TRIES, first_gone, lost, move, outrun, tag_of
from holdfast.connectors.lake.location import Location, no_table
from holdfast.connectors.lake.prepare import TableOrder
from holdfast.connectors.paimon.folders import bucket_folder
from holdfast.connectors.paimon.manifests import ADD
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.snapshots import Snapshots, link_new, read_snapshot
from holdfast.connectors.paimon.staged_files import PaimonFile, PaimonStaged
from holdfast.connectors.paimon.table import PaimonTable
from holdfast.connectors.save_modes import data_exists
from holdfast.errors import OutcomeUnknown, Unavailable, UserError


def commit(
    identifier: CommitId, place: Location, staged: Sequence[PaimonStaged], order: TableOrder | None
) -> None:
    """Make what was staged for one table visible, and do before what the save modes say.

    A repeated identifier changes nothing, nor do save modes that their incarnation has applied.
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
    raise outrun("Paimon", place.url)


def check(identifier: CommitId, place: Location, staged: Sequence[PaimonStaged]) -> None:
    """Raise UserError if the commit is yet to come, and files it needs are gone."""
    files = [file for one in staged for file in one.files]
    with _looking_again(identifier, place):
        missing = first_gone(place, files)
        if missing and not _loaded(place).has(identifier, files):
            raise lost("Paimon", place, missing)


@contextmanager
def _looking_again(identifier: CommitId, place: Location) -> Iterator[None]:
    """Raise OutcomeUnknown where the disk fails, or where the state that was looked at has expired
    meanwhile."""
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


def _shape(order: TableOrder | None) -> PaimonSchema | None:
    """Return the columns of a table that is recreated."""
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
                f"Paimon cannot commit to {table.place.url}: the table was recreated, or its keys,"
                " partitions or buckets were changed, after rows were staged for it. Start the job"
                " again.",
                code="sink.schema_changed",
            )
        for file in one.files:
            _check_place(table, file, written)


def _check_place(table: PaimonTable, file: PaimonFile, schema: PaimonSchema) -> None:
    """Raise UserError if readers would look for a file elsewhere, by its partition's values."""
    try:
        where = bucket_folder(file.entry(ADD), schema)
    except (ValueError, LookupError, OverflowError, struct.error):
        where = ""
    if file.final.rpartition("/")[0] != where:
        raise UserError(
            f"Paimon refuses what was staged for {table.place.url}: the file {file.final} is not"
            " in the folder of its partition. Nothing was moved. Look at the worker that ran"
            " the task.",
            code="sink.committable_refused",
        )


log = logging.getLogger("holdfast")


def tag_savepoint(place: Location, identifier: CommitId, job: str) -> None:
    """Tag the snapshot of a savepoint's commit in one table, unless it has its tag.

    Where nothing was staged since, that is the snapshot of the user's last commit before.
    """
    tag = tag_of(identifier, job)
    path = Path(place.path) / "tag" / f"tag-{tag}"
    snapshots = Snapshots(Path(place.path))
    for one in snapshots.back_from(snapshots.latest()):
        said = one.content
        if said["commitUser"] == identifier.user and said["commitIdentifier"] <= identifier.number:
            break
    else:
        return  # this sink has not committed to it, or so long ago that it has expired
    try:
        made = link_new(path, one)
    except OSError as error:
        raise Unavailable(
            f"Paimon cannot set the tag {tag} of {place.url}: {error}.", code="sink.tag_failed"
        ) from error
    there = one if made else read_snapshot(path)
    if there is not None and there.content["commitUser"] != identifier.user:
        log.warning(
            "Paimon: %s has a tag %s of somebody else; it stays, and the savepoint has none.",
            place.url, tag,
        )  # fmt: skip
    elif made and not snapshots.path(one.number).exists():
        path.unlink(missing_ok=True)  # it expired meanwhile: what it names may be gone
        raise Unavailable(
            f"Paimon cannot set the tag {tag} of {place.url}: its snapshot has just expired.",
            code="sink.tag_failed",
        )
