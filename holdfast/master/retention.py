"""What any master can answer about jobs, and what stays of those that are gone.

Everything is read from the store, with the revision it is as of: a standby's answer is as true as
the leader's.
"""

from dataclasses import dataclass

from holdfast.core.job import TERMINAL, JobRecord
from holdfast.master.event_log import PAST
from holdfast.master.leader_store import LeaderStore
from holdfast.master.records import RecordUnreadable, decode, job_key
from holdfast.store.contract import COMMIT_KEYS_MAX, Delete, Guard, Item, Store

HISTORY = "history/"


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as its record, or what stayed of it, shows it."""

    id: str
    incarnation: str
    status: str
    reason: str
    revision: int
    running: bool


async def find_job(store: Store, job: str) -> JobView | None:
    """Return the present or else the last job of an id; None if none is remembered."""
    item = await store.get(job_key(job))
    if item:
        return _view(item)
    entries, _ = await store.range(f"{HISTORY}{job}/")
    return _view(max(entries, key=lambda i: i.created)) if entries else None


async def list_jobs(store: Store) -> tuple[list[JobView], list[JobView]]:
    """Return the running and the finished jobs.  A tombstone is finished."""
    records, _ = await store.range("job/")
    entries, _ = await store.range(HISTORY)
    views = [_view(item) for item in (*records, *entries)]
    return [v for v in views if v.running], [v for v in views if not v.running]


async def trim(desk: LeaderStore) -> None:
    """Forget the oldest entries beyond the number to keep."""
    entries = sorted(await desk.read_range(HISTORY), key=lambda i: i.created)
    old, each = entries[: max(0, len(entries) - desk.settings.history)], COMMIT_KEYS_MAX // 2 - 1
    for some in (old[at : at + each] for at in range(0, len(old), each)):
        guards = [Guard(i.key, i.revision) for i in some]
        keys = [k for i in some for k in (i.key, PAST + i.key.removeprefix(HISTORY))]
        await desk.write(guards, [Delete(k) for k in keys], some[0].key, "history.trim")


def _view(item: Item) -> JobView:
    try:
        job = decode(JobRecord, item.value)
    except RecordUnreadable as error:
        return JobView(item.key.split("/")[1], "", "DAMAGED", str(error), item.revision, False)
    running = job.status not in TERMINAL
    return JobView(job.id, job.incarnation, job.status, job.reason, item.revision, running)
