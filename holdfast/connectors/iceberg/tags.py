"""Tags of savepoints: the table as a savepoint's commit left it, kept from being expired.

A tag is named after the job's life and the checkpoint, so that a job that begins anew, and numbers
its checkpoints from 1 again, never takes another's.  A tag that is there is moved only if it is on
a snapshot of the same user.
"""

import logging
from collections.abc import Callable

from holdfast.connect.sink import CommitId
from holdfast.connectors.iceberg.table import IcebergTable
from holdfast.connectors.lake.tags import tag_of
from holdfast.errors import Unavailable

TRIES = 10

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
        f"Iceberg cannot set the tag {tag}: others always were faster, {TRIES} times.",
        code="sink.tag_conflicts",
    )
