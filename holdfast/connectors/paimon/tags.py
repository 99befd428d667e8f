"""Tags of savepoints: the table as a savepoint's commit left it, kept from being expired.

A tag is a copy of its snapshot in the folder `tag`.
"""

import logging
from pathlib import Path

from holdfast.connect.sink import CommitId
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.tags import tag_of
from holdfast.connectors.paimon.snapshots import Snapshots, link_new, read_snapshot
from holdfast.errors import Unavailable

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
