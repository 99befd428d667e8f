"""Let old snapshots go, as the table's own options say.

Only snapshots of ours are removed, the oldest first, and of these only what is before another one
of ours: with a snapshot that deletes files, those files go, too, and in one of others that is the
work of the writer that committed it.  What a tag or a consumer needs stays, and so does everything
in a table with branches.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.connectors.paimon.folders import bucket_folder
from holdfast.connectors.paimon.manifests import DELETE, Manifests
from holdfast.connectors.paimon.schema import PaimonSchema
from holdfast.connectors.paimon.snapshots import Snapshot, Snapshots, read_snapshot

RETAIN_LEAST, RETAIN_LEAST_DEFAULT = "snapshot.num-retained.min", "10"
RETAIN_MOST = "snapshot.num-retained.max"
RETAIN_TIME, RETAIN_TIME_DEFAULT = "snapshot.time-retained", "1 h"
LIMIT, LIMIT_DEFAULT = "snapshot.expire.limit", "50"
WRITE_ONLY = "write-only"

UNITS_MS = {
    "ms": 1, "milli": 1, "millis": 1, "millisecond": 1, "milliseconds": 1, "": 1,
    "s": 1000, "sec": 1000, "secs": 1000, "second": 1000, "seconds": 1000,
    "m": 60_000, "min": 60_000, "mins": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
    "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
}  # fmt: skip


def expire(table: Path, snapshots: Snapshots, head: Snapshot, schema: PaimonSchema) -> None:
    """Remove snapshots that are not needed, and the manifests that only they name."""
    if schema.options.get(WRITE_ONLY, "false").lower() == "true" or _names(table / "branch"):
        return
    numbers = _in_a_row(snapshots, sorted(snapshots.listed()))
    gone = list(_due(table, snapshots, numbers, head, schema))
    if not gone:
        return
    first_left = snapshots.read(gone[-1].number + 1)
    if first_left is None:
        return  # somebody else is at it
    manifests = Manifests(table, schema)
    tags = list(_tags(table))
    needed = {name for one in (first_left, *tags) for name in _named(manifests, one)}
    deleted = list(_deleted(table, manifests, [*gone[1:], first_left], tags))
    snapshots.hint_earliest(first_left.number)
    for one in gone:
        unneeded = [name for name in _named(manifests, one) if name not in needed]
        snapshots.path(one.number).unlink(missing_ok=True)
        for name in unneeded:
            (manifests.folder / name).unlink(missing_ok=True)
    for path in deleted:
        path.unlink(missing_ok=True)


def _in_a_row(snapshots: Snapshots, numbers: list[int]) -> list[int]:
    """Return the numbers of the snapshots without a gap up to the latest.

    One of ours before a gap was written too late by a committer that died before it saw that.
    """
    first = len(numbers) - 1
    while first > 0 and numbers[first - 1] == numbers[first] - 1:
        first -= 1
    for number in numbers[: max(0, first)]:
        stray = snapshots.read(number)
        if stray is not None and stray.committed is not None:
            snapshots.path(number).unlink(missing_ok=True)
    return numbers[max(0, first) :]


def _due(
    table: Path, snapshots: Snapshots, numbers: list[int], head: Snapshot, schema: PaimonSchema
) -> Iterator[Snapshot]:
    """Yield the snapshots to remove, in their order."""
    said = schema.options
    least = max(1, int(said.get(RETAIN_LEAST, RETAIN_LEAST_DEFAULT)))
    most = max(least, int(said.get(RETAIN_MOST, 1 << 31)))
    older_ms = int(time.time() * 1000) - duration_ms(said.get(RETAIN_TIME, RETAIN_TIME_DEFAULT))
    end = min([head.number - least + 1, *_consumed(table)])
    for number in numbers[: max(1, int(said.get(LIMIT, LIMIT_DEFAULT)))]:
        one, following = snapshots.read(number), snapshots.read(number + 1)
        if one is None or following is None or number >= end:
            return
        due = one.content["timeMillis"] < older_ms or head.number - number >= most
        if not (due and one.is_ours and following.is_ours):
            return
        yield one


def _deleted(
    table: Path, manifests: Manifests, snapshots: Sequence[Snapshot], tags: Sequence[Snapshot]
) -> Iterator[Path]:
    """Yield the files that snapshots have deleted, and that no tag has."""
    changed = [
        one
        for snapshot in snapshots
        for one in manifests.listed(snapshot.content["deltaManifestList"])
        if one["_NUM_DELETED_FILES"]
    ]
    if not changed:
        return
    kept = {entry["_FILE"]["_FILE_NAME"] for tag in tags for entry in manifests.live(tag)}
    for one in changed:
        for entry in manifests.entries(one["_FILE_NAME"]):
            file = entry["_FILE"]
            inside = not file.get("_EXTERNAL_PATH")
            if entry["_KIND"] == DELETE and inside and file["_FILE_NAME"] not in kept:
                where = table / bucket_folder(entry, manifests.schema)
                yield from (where / name for name in (file["_FILE_NAME"], *file["_EXTRA_FILES"]))


def _named(manifests: Manifests, snapshot: Snapshot) -> Iterator[str]:
    """Yield the files in the manifest folder that a snapshot names; none if they are gone."""
    for key in ("baseManifestList", "deltaManifestList"):
        name = snapshot.content[key]
        yield name
        try:
            listed = manifests.listed(name)
        except FileNotFoundError:
            continue  # another one has removed it already
        yield from (one["_FILE_NAME"] for one in listed)


def _tags(table: Path) -> Iterator[Snapshot]:
    for name in _names(table / "tag"):
        found = read_snapshot(table / "tag" / name) if name.startswith("tag-") else None
        if found is not None:
            yield found


def _consumed(table: Path) -> Iterator[int]:
    """Yield the snapshots that streaming readers will read next."""
    for name in _names(table / "consumer"):
        if name.startswith("consumer-"):
            yield int(json.loads((table / "consumer" / name).read_text())["nextSnapshot"])


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return []


def duration_ms(text: str) -> int:
    """Read a time such as `1 h`; raise ValueError if it is none."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if not found or found[2] not in UNITS_MS:
        raise ValueError(f"'{text}' is not a time such as '1 h' or '30 min'")
    return int(found[1]) * UNITS_MS[found[2]]
