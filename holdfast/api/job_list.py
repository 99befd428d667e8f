"""Lists of jobs: those that the leader keeps, and those that are over.

Nothing here waits for a worker, and on the leader nothing waits for the store either.  Rows are
built at most a few times a second, no matter how many clients ask.  Ended jobs are read once and
then kept up to date by watching the store: a thousand of them are thousands of kilobytes, too many
to read for each page of a list.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.api.job_graph import JobGraphs
from holdfast.api.live_views import health_told
from holdfast.api.requests import JobsAsked
from holdfast.api.status_board import JobStatusView, StatusBoard
from holdfast.api.views import (
    JobList,
    JobRow,
)
from holdfast.core.job import TERMINAL, JobRecord
from holdfast.errors import Unavailable
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader
from holdfast.master.master import Master
from holdfast.master.records import RecordUnreadable, decode
from holdfast.master.retention import HISTORY
from holdfast.plan.masking import masked_text
from holdfast.store.contract import Compacted, Item, Store

AGAIN_S = 1.0

FRESH_S = 0.2
LIVING = ("RUNNING", "PENDING", "FAILING", "CANCELING", "DOING_SAVEPOINT")


@dataclass
class _Built:
    """Rows as of a moment."""

    key: object = None
    at_s: float = 0.0
    rows: list[JobRow] = field(default_factory=list)


class EndedJob:
    """A job that is over, or the reason why its record cannot be read."""

    __slots__ = ("created", "damage", "id", "job")

    def __init__(self, item: Item) -> None:
        self.id = item.key.split("/")[1]
        self.created = item.created
        self.damage = ""
        self.job: JobRecord | None = None
        try:
            self.job = decode(JobRecord, item.value)
        except RecordUnreadable as error:
            self.damage = str(error)


class EndedJobs:
    """What stayed of ended jobs, by key.  Until `run` has read them, every look reads the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: dict[str, EndedJob] = {}
        self._followed = False
        self.version = 0

    async def run(self) -> None:
        """Follow the store until cancelled."""
        while True:
            try:
                await self._follow()
            except (Compacted, Unavailable):
                self._followed = False
            await asyncio.sleep(AGAIN_S)

    async def entries(self) -> list[EndedJob]:
        """Return all ended jobs."""
        if not self._followed:
            await self._read()
        return list(self._entries.values())

    async def _read(self) -> int:
        items, revision = await self._store.range(HISTORY)
        self._entries = {i.key: EndedJob(i) for i in items}
        self.version += 1
        return revision

    async def _follow(self) -> None:
        revision = await self._read()
        self._followed = True
        async with contextlib.aclosing(self._store.watch(HISTORY, revision)) as changes:
            async for together in changes:
                for change in together:
                    self._entries.pop(change.key, None)
                    if change.item:
                        self._entries[change.key] = EndedJob(change.item)
                self.version += 1


class Listing:
    """All jobs that this master knows of."""

    def __init__(
        self, master: Master, board: StatusBoard, catalog: EndedJobs, sketches: JobGraphs
    ) -> None:
        self._master = master
        self._board = board
        self._catalog = catalog
        self._sketches = sketches
        self._live = _Built()
        self._over = _Built()

    async def jobs(self, leader: Leader | None, asked: JobsAsked, begin: str) -> JobList:
        """Return the jobs that are asked for, the newest first; `limit` 0: all of them."""
        if leader:
            rows, revision = (
                self._kept(leader),
                max((k.revision for k in leader.jobs.values()), default=0),
            )
        else:
            records, revision = await self._master.store.range("job/")
            rows = [row(item) for item in records]
        known = {(r.job_id, r.incarnation) for r in rows}
        over = await self._ended()
        everything = [*rows, *(r for r in over if (r.job_id, r.incarnation) not in known)]
        if begin:
            everything = [r for r in everything if r.job_id.startswith(begin)]
        everything.sort(key=lambda r: r.since_s, reverse=True)
        counts = dict(Counter(r.status for r in everything))
        wanted = [r for r in everything if _wanted(r, asked)]
        first, limit = max(0, asked.offset), max(0, asked.limit)
        page = wanted[first : first + limit] if limit else wanted[first:]
        return JobList(revision, page, len(wanted), counts)

    def _kept(self, leader: Leader) -> list[JobRow]:
        """Return the rows of the jobs that the leader keeps, and of those it has just buried."""
        now_s = self._master.ports.clock.now()
        key = (leader.desk.term, self._board.version, len(leader.jobs))
        if self._live.key != key or now_s - self._live.at_s > FRESH_S:
            rows = [
                live_row(
                    leader, k, self._board.lives.get(k.state.id),
                    found.mode if (found := self._sketches.known(k.state)) else "",
                )
                for k in leader.jobs.values()
            ]  # fmt: skip
            rows += [
                JobRow(job, "", "", "DAMAGED", why, 0.0, 0.0)
                for job, why in leader.quarantined.items()
            ]
            rows += [row_of(j) for j in self._board.gone.values() if j.id not in leader.jobs]
            self._live = _Built(key, now_s, rows)
        return list(self._live.rows)

    async def _ended(self) -> Sequence[JobRow]:
        entries = await self._catalog.entries()
        if self._over.key != self._catalog.version:
            rows = [
                row_of(e.job) if e.job else JobRow(e.id, "", "", "DAMAGED", e.damage, 0.0, 0.0)
                for e in entries
            ]
            self._over = _Built(self._catalog.version, 0.0, rows)
        return self._over.rows


def _wanted(one: JobRow, asked: JobsAsked) -> bool:
    search = asked.search.lower()
    if search and search not in one.job_id.lower() and search not in one.name.lower():
        return False
    if asked.health and (one.health != asked.health.upper() or one.status in TERMINAL):
        return False
    match asked.status.lower():
        case "":
            return True
        case "running":
            return one.status in LIVING
        case "ended":
            return one.status not in LIVING
    return one.status == asked.status.upper()


def live_row(
    leader: Leader, keeper: JobKeeper, sight: JobStatusView | None, mode: str = ""
) -> JobRow:
    """Return the row of a job that the leader keeps."""
    job = keeper.state
    found = row_of(job)
    found.mode = mode
    if job.status in TERMINAL:
        return found
    reports = {r.pipeline: r for r in leader.health(job.id)}
    found.health, found.health_reason = health_told(job.status, reports)
    found.checkpoint_age_s = round(max((r.age_s for r in reports.values()), default=0.0), 3)
    owed = [r.commit_age_s for r in reports.values() if r.commit]
    found.commit_age_s = round(max(owed), 3) if owed else None
    found.checkpoint_at_s = min((r.checkpoint_at_s for r in reports.values()), default=0.0)
    latest = [k.state.checkpoints.latest for k in keeper.pipelines.values()]
    done = [c.totals for c in latest if c]
    rates = list(sight.rates.values()) if sight else []
    ahead = sum(r.last[1] for r in rates)
    found.read = max(sum(d.read for d in done), ahead)
    found.written = sum(d.written for d in done)
    found.rejected = sum(d.rejected for d in done)
    found.bytes = sum(d.bytes for d in done)
    if sight:
        read, written = sight.rate()
        found.read_per_s, found.written_per_s = round(read, 3), round(written, 3)
        found.restarts = sight.restarts
    return found


def row(item: Item) -> JobRow:
    """Return the row of a job record, or of what the history keeps of it."""
    try:
        job = decode(JobRecord, item.value)
    except RecordUnreadable as error:
        return JobRow(item.key.split("/")[1], "", "", "DAMAGED", str(error), 0.0, 0.0)
    return row_of(job)


def row_of(job: JobRecord) -> JobRow:
    """Return the row of a job as its record shows it."""
    totals = job.totals
    return JobRow(
        job.id, job.incarnation, job.name, job.status.value, masked_text(job.reason), job.since_s,
        job.ended_s, read=totals.read, written=totals.written, bytes=totals.bytes,
        rejected=totals.rejected,
    )  # fmt: skip
