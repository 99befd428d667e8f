"""What a master answers to clients, as JSON under /api.

Only the leader takes orders, and it answers yes only once what was asked is durable.  A standby
names the leader (421); lists and states it reads from the store, which is as true.
"""

import asyncio
import hashlib
import json
import re
import secrets
import time
from collections.abc import Awaitable
from pathlib import Path

from holdfast.connect.registry import Registry
from holdfast.connect.report import Report
from holdfast.core.job import Job, JobStatus
from holdfast.core.pipeline import Pipeline
from holdfast.errors import Fenced, HoldfastError, Unavailable, UserError
from holdfast.master.desk import LEADER
from holdfast.master.explain import Explanation, Queue, Scene, explain
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader
from holdfast.master.master import Master, read_mark
from holdfast.master.records import RecordUnreadable, decode, job_key
from holdfast.master.submit import new_records, too_large
from holdfast.model.job import Job as Planned
from holdfast.model.secret import Secret
from holdfast.node.api_views import (
    Accepted,
    ClusterView,
    JobDetail,
    JobList,
    LogLines,
    Submit,
    detail,
    row,
    workers,
)
from holdfast.node.journal import Journal
from holdfast.plan.spec import Spec, decode_spec
from holdfast.wire.messages import Held

JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LOG_BYTES_MAX = 4_000_000
SETTLED_S = 3.0
"""How long after its election a leader believes to have heard every worker."""


class Elsewhere(HoldfastError):
    """Another master leads; ask that one."""


class Api:
    """The answers of one master."""

    def __init__(
        self,
        master: Master,
        registry: Registry,
        journal: Journal,
        token: Secret,
        *,
        allow_python: bool = False,
        refuse_too_large: bool = False,
        log_file: Path | None = None,
    ) -> None:
        self.master = master
        self.registry = registry
        self.journal = journal
        self.token = token
        self.allow_python = allow_python
        self.refuse_too_large = refuse_too_large
        self.log_file = log_file
        self._submitting = asyncio.Lock()

    async def submit(self, asked: Submit) -> Accepted:
        """Check a job, every mistake at once, and accept it once it is durable."""
        await self._leader()
        job_id = asked.job_id or _id_of(asked.token)
        if not JOB_ID.fullmatch(job_id):
            raise UserError(
                f"The job id '{job_id}' is no good. Use 1 to 64 letters, digits, '.', '_' or '-'.",
                code="job.id",
            )
        spec, report = self._spec(asked.spec), Report()
        report.lenient = spec.lenient
        planned = await asyncio.to_thread(spec.job, self.registry, report)
        accepted = Accepted(job_id, planned.name, [str(w) for w in report.warnings])
        # One at a time: the same submit may come again while it is being written.
        async with self._submitting:
            leader = await self._leader()
            restore = None
            if job_id not in leader.jobs:
                # A repeated submit may come when the job has already ended and gone.
                before = await self._history(job_id)
                if any(job.token == asked.token for job in before):
                    return accepted
                restore = _savepoint(job_id, before, planned) if asked.restore else None
            incarnation = f"{time.time_ns():x}-{secrets.token_hex(2)}"
            made = new_records(job_id, incarnation, asked.token, asked.spec, planned, restore)
            if self.refuse_too_large:
                self._check_size(leader, *made)
            await self._fenced(leader, leader.submit(*made))
        return accepted

    async def jobs(self) -> JobList:
        """Return all jobs, the newest first."""
        store = self.master.store
        records, revision = await store.range("job/")
        entries, _ = await store.range("history/")
        rows = [row(item) for item in (*records, *entries)]
        return JobList(revision, sorted(rows, key=lambda r: r.since_s, reverse=True))

    async def job(self, job_id: str) -> JobDetail:
        """Return all about one job."""
        leader = self._leading()
        keeper = leader.jobs.get(job_id) if leader else None
        if leader and keeper:
            return self._live(leader, keeper)
        mark = await self.master.store.get(LEADER)
        url = read_mark(mark.value).url if mark else ""
        job, pipelines, revision = await self._stored(job_id)
        return detail(job, pipelines, revision=revision, leader=url)

    async def explain(self, job_id: str) -> Explanation:
        """Say what a job waits for."""
        leader = await self._leader()
        keeper = leader.jobs.get(job_id)
        if keeper is None:
            job, _, _ = await self._stored(job_id)
            return explain(self._scene(leader, job, ()))
        pipelines = tuple(k.state for _, k in sorted(keeper.pipelines.items()))
        return explain(self._scene(leader, keeper.state, pipelines))

    async def cancel(self, job_id: str) -> Accepted:
        """Have a job stop.  Yes for one that is over already."""
        leader = await self._leader()
        if job_id not in leader.jobs and await self._history(job_id):
            return Accepted(job_id)
        await self._fenced(leader, leader.cancel(job_id))
        return Accepted(job_id)

    async def savepoint(self, job_id: str) -> Accepted:
        """Have a job stop with a savepoint."""
        leader = await self._leader()
        if job_id not in leader.jobs and await self._history(job_id):
            raise UserError(f"Job {job_id} is over; it cannot be saved.", code="job.not_running")
        await self._fenced(leader, leader.savepoint(job_id, secrets.token_hex(8)))
        return Accepted(job_id)

    async def cluster(self) -> ClusterView:
        """Return who leads and who works."""
        leader = await self._leader()
        now_s = self.master.ports.clock.now()
        return ClusterView(
            self.master.name, self.master.url, leader.desk.term, workers(leader.crew, now_s),
            dict(leader.quarantined),
        )  # fmt: skip

    async def logs(self, job_id: str) -> LogLines:
        """Return what this master has logged about a job; other masters may know more."""
        found = await asyncio.to_thread(_log_lines, self.log_file, job_id)
        return LogLines(self.master.name, found)

    def _leading(self) -> Leader | None:
        """Return the leader, if it is this master and all records are loaded."""
        leader, now_s = self.master.leader, self.master.ports.clock.now()
        if leader and leader.loaded and self.master.election.may_act(now_s):
            return leader
        return None

    async def _leader(self) -> Leader:
        leader = self._leading()
        if leader:
            return leader
        mark = await self.master.store.get(LEADER)
        known = read_mark(mark.value) if mark else None
        if known is None or known.incarnation == self.master.incarnation:
            raise Unavailable(
                "No master leads at this moment. Ask again in a moment.", code="master.no_leader"
            )
        raise Elsewhere(
            f"This master stands by; {known.name} leads at {known.url}.",
            code="master.standby",
            leader=known.url,
        )

    async def _fenced(self, leader: Leader, order: Awaitable[None]) -> None:
        """Carry out an order; being fenced ends the term, and the client asks the next leader."""
        try:
            await order
        except Fenced as error:
            leader.desk.abandon()
            raise Unavailable(
                "This master no longer leads; it is not known here whether the order was taken."
                " Ask again.",
                code="master.fenced",
            ) from error

    def _check_size(self, leader: Leader, job: Job, pipelines: tuple[Pipeline, ...]) -> None:
        """Refuse a job that the workers could never carry; a new leader must hear them first."""
        clock = self.master.ports.clock
        if clock.now() < leader.crew.since_s + SETTLED_S:
            raise Unavailable("This master has just begun to lead. Ask again in a moment.")
        why = too_large(job, pipelines, leader.crew)
        if why and job.id not in leader.jobs:
            raise UserError(
                f"Job {job.name} fits on no worker that is connected, even an empty one: {why}."
                " Start more workers or give them more slots or tags, lower the job's parallelism,"
                " or set too_large: wait on the masters.",
                code="job.too_large",
            )

    def _spec(self, text: str) -> Spec:
        try:
            spec = decode_spec(text)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise UserError(f"The job cannot be read: {error!r}.", code="spec.damaged") from error
        if spec.allow_python and not self.allow_python:
            raise UserError(
                "This cluster runs no Python functions of job files. Set allow_python on its"
                " masters, or submit without --allow-python.",
                code="job.python",
            )
        return spec

    async def _history(self, job_id: str) -> list[Job]:
        """Return what stayed of former jobs of an id, the newest first."""
        entries, _ = await self.master.store.range(f"history/{job_id}/")
        found = sorted(entries, key=lambda i: i.created, reverse=True)
        return [decode(Job, item.value) for item in found]

    async def _stored(self, job_id: str) -> tuple[Job, tuple[Pipeline, ...], int]:
        """Read a job from the store: its records, or what stayed of it."""
        store = self.master.store
        try:
            item = await store.get(job_key(job_id))
            if item:
                parts, revision = await store.range(f"pipeline/{job_id}/")
                pipelines = tuple(decode(Pipeline, p.value) for p in parts)
                return decode(Job, item.value), pipelines, revision
            former, revision = await self._history(job_id), (await store.range("leader"))[1]
        except RecordUnreadable as error:
            raise UserError(f"Job {job_id} is damaged: {error}", code="job.damaged") from error
        if not former:
            raise UserError(f"There is no job {job_id}.", code="job.unknown")
        return former[0], (), revision

    def _live(self, leader: Leader, keeper: JobKeeper) -> JobDetail:
        job = keeper.state
        return detail(
            job,
            [k.state for _, k in sorted(keeper.pipelines.items())],
            revision=keeper.revision,
            leader=self.master.url,
            reports={r.pipeline: r for r in leader.health(job.id)},
            held=_held(leader, job),
            waits=_waits(leader, job),
            live=True,
        )

    def _scene(self, leader: Leader, job: Job, pipelines: tuple[Pipeline, ...]) -> Scene:
        keeper = leader.jobs.get(job.id)
        parts = keeper.pipelines.items() if keeper else ()
        crew, ports = leader.crew, self.master.ports
        holding = {
            seen.hello.worker
            for seen in crew.seen.values()
            for h in seen.hello.held
            if (h.key.job, h.key.incarnation) == (job.id, job.incarnation)
        }
        return Scene(
            job,
            pipelines,
            ports.settings,
            ports.clock.date(),
            reports={r.pipeline: r for r in leader.health(job.id)},
            waits=_waits(leader, job),
            missing={n: p.gathering.waiting for n, p in parts if p.gathering},
            connected=frozenset(crew.seen),
            holding=tuple(sorted(holding)),
            since=self.journal.since(job.id),
            buried=keeper is None,
            queue=_queue(leader, job),
        )


def _queue(leader: Leader, job: Job) -> Queue:
    """Return where a job stands among those that wait to start, and who holds the slots."""
    living = [k for k in leader.jobs.values() if not k.terminal]
    starting = sorted((k.order, k.state.id) for k in living if k.state.status is JobStatus.PENDING)
    waiting = [name for _, name in starting]
    held = {
        k.state.id: sum(t.slots for p in k.pipelines.values() for t in p.state.tasks if t.live)
        for k in sorted(living, key=lambda k: k.order)
    }
    place = waiting.index(job.id) + 1 if job.id in waiting else 0
    holders = tuple((name, n) for name, n in held.items() if n)
    mine = leader.jobs.get(job.id)
    parts = [p.state for p in mine.pipelines.values()] if mine and place else []
    return Queue(place, len(waiting), holders, too_large(job, parts, leader.crew))


def _id_of(token: str) -> str:
    """Return an id for a job without one: the same for the same submit, 18 digits."""
    return str(int(hashlib.sha256(token.encode()).hexdigest(), 16))[:18]


def _savepoint(job_id: str, former: list[Job], planned: Planned) -> dict[int, str]:
    """Return the blobs of the newest savepoint of a job, one for each pipeline."""
    if not former:
        raise UserError(f"There is no job {job_id} to restore.", code="job.unknown")
    last = former[0]
    if last.status is not JobStatus.SAVEPOINT_DONE or not last.saved:
        raise UserError(
            f"Job {job_id} ended as {last.status} and left no savepoint. Submit it anew, or"
            " restore one that was stopped with: holdfast savepoint.",
            code="job.no_savepoint",
        )
    if len(last.saved) != len(planned.pipelines):
        raise UserError(
            f"The savepoint of job {job_id} has {len(last.saved)} pipelines and the job file has"
            f" {len(planned.pipelines)}. Restore it with the file it was made with.",
            code="job.other_savepoint",
        )
    return dict(last.saved)


def _held(leader: Leader, job: Job) -> dict[tuple[int, str], Held]:
    everything = (h for seen in leader.crew.seen.values() for h in seen.hello.held)
    mine = [h for h in everything if (h.key.job, h.key.incarnation) == (job.id, job.incarnation)]
    return {(h.key.pipeline, h.key.task): h for h in sorted(mine, key=lambda h: h.attempt)}


def _waits(leader: Leader, job: Job) -> dict[tuple[int, str], str]:
    mine = {k: why for k, why in leader.waits.items() if k.job == job.id}
    return {(k.pipeline, k.task): w for k, w in mine.items() if k.incarnation == job.incarnation}


def _log_lines(file: Path | None, job_id: str) -> list[dict[str, object]]:
    """Return the lines about a job from the end of a log."""
    if file is None or not file.exists():
        return []
    with file.open("rb") as log:
        log.seek(max(0, file.stat().st_size - LOG_BYTES_MAX))
        lines = log.read().decode(errors="replace").splitlines()
    found = (json.loads(line) for line in lines if job_id in line and line.startswith("{"))
    return [line for line in found if line.get("job_id") == job_id]
