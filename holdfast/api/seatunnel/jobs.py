"""SeaTunnel's REST v2 about jobs: 2 running, 3 summary, 5 one job, 6 finished."""

import copy
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from holdfast.api.job_graph import JobGraph
from holdfast.api.job_snapshot import scene_of
from holdfast.api.live_views import committed, health_told, restarts_of
from holdfast.api.route import ApiRequest, Handler, Permission, Route, TextAnswer
from holdfast.api.seatunnel.pending import no_leader
from holdfast.api.seatunnel.views import (
    Diagnostics,
    JobInfo,
    JobSummary,
    Page,
    PipelineDiagnostics,
    RestartReason,
    SinkPromise,
)
from holdfast.api.service import Api
from holdfast.api.status_board import JobStatusView
from holdfast.core.checkpoint import Totals
from holdfast.core.gather import WrittenRows
from holdfast.core.job import TERMINAL, JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord
from holdfast.errors import UserError
from holdfast.master.explain import as_text, explain
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader
from holdfast.plan.masking import masked_text

Figures = dict[str, str | dict[str, str]]
NO_TABLES: Figures = {
    f"{kind}{name}": {}
    for kind in ("TableSinkWrite", "TableSinkCommitted", "TableSourceReceived")
    for name in ("Count", "QPS", "Bytes", "BytesPerSeconds")
}

T = TypeVar("T")
READ = Permission.READ
STATES = ("FINISHED", "CANCELED", "FAILED", "SAVEPOINT_DONE", "UNKNOWABLE")


class Paged(msgspec.Struct):
    """Which page, from 1, and how many rows a page has; without `page`, everything at once."""

    page: int | None = None
    rows: int = 10


class Full(msgspec.Struct):
    """Whether the figures of each job are wanted too."""

    full: bool = False


class JobsV2:
    """The handlers."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._told: WeakKeyDictionary[JobKeeper, tuple[object, JobInfo]] = WeakKeyDictionary()

    def routes(self) -> list[Route]:
        """Return the paths."""
        lists = list[JobInfo] | Page
        declared: list[tuple[str, Handler, Any, str, type[msgspec.Struct] | None]] = [
            ("/running-jobs", self.running, lists, "2. The jobs that run.", Paged),
            ("/running-jobs/summary", self.summary, list[JobSummary], "3. The same in short.",
             Full),
            ("/job-info/{jobId}", self.info, JobInfo, "5. One job.", None),
            ("/running-job/{jobId}", self.info, JobInfo, "5. One job, by its old path.", None),
            ("/finished-jobs", self.finished, lists, "6. The jobs that are over.", Paged),
            ("/finished-jobs/{state}", self.finished, lists, "6. Those that ended so.", Paged),
        ]  # fmt: skip
        return [
            Route("GET", path, READ, handler, answer, about, query)
            for path, handler, answer, about, query in declared
        ]

    async def running(self, ask: ApiRequest) -> object:
        leader = self.api.leading()
        if leader is None:
            return await self._running_from_store(ask.query)
        kept = [k for k in leader.jobs.values() if not k.terminal]
        kept.sort(key=lambda k: k.order, reverse=True)
        page, total = _cut(kept, ask.query)
        infos = [await self._live(leader, k) for k in page]
        return infos if ask.query.page is None else Page(infos, total)

    async def summary(self, ask: ApiRequest) -> object:
        begun_s = time.monotonic()
        leader = self.api.leading()
        if leader is None:
            raise no_leader()
        kept = [k for k in leader.jobs.values() if not k.terminal]
        kept.sort(key=lambda k: k.order, reverse=True)
        found = [self._short(leader, k, full=ask.query.full) for k in kept]
        took_ms = f"{(time.monotonic() - begun_s) * 1000:.0f}"
        headers = {"X-Dispatch-Delay-Ms": "0", "X-Handler-Cost-Ms": took_ms}
        return TextAnswer(msgspec.json.encode(found), "application/json;charset=UTF-8", headers)

    async def info(self, ask: ApiRequest) -> JobInfo:
        leader = self.api.leading()
        keeper = leader.jobs.get(ask.job) if leader else None
        if leader and keeper and not keeper.terminal:
            found = await self._live(leader, keeper)
            scene = scene_of(
                leader, self.api.master.ports, self.api.board.journal, keeper.state,
                tuple(k.state for _, k in sorted(keeper.pipelines.items())),
            )  # fmt: skip
            found.explain = masked_text(as_text(explain(scene), date_text))
            found.diagnostics = _diagnostics(keeper, self.api.sight(ask.job))
            return found
        try:
            job, parts, _ = await self.api.stored(ask.job)
        except UserError as error:
            if error.code == "job.unknown":
                return JobInfo(ask.job)
            raise
        sight = self.api.sight(ask.job)
        sketch = await self.api.sketches.of(job)
        if job.status in TERMINAL:
            return _over(job, parts, sketch, sight)
        return _info(job, parts, sketch, sight)

    async def finished(self, ask: ApiRequest) -> object:
        state = ask.path.get("state", "")
        if state and state not in STATES:
            raise UserError(
                f"'{state}' is no state of a finished job. Good ones: {', '.join(STATES)}.",
                code="request",
            )
        jobs = [e.job for e in await self.api.catalog.entries() if e.job]
        known = {(j.id, j.incarnation) for j in jobs}
        leader = self.api.leading()
        kept = [k.state for k in leader.jobs.values() if k.terminal] if leader else []
        gone = list(self.api.board.gone.values()) if leader else []
        for job in (*kept, *gone):
            if (job.id, job.incarnation) not in known:
                known.add((job.id, job.incarnation))
                jobs.append(job)
        wanted = [j for j in jobs if not state or j.status == state]
        wanted.sort(key=lambda j: j.ended_s, reverse=True)
        page, total = _cut(wanted, ask.query)
        infos = [_over(j, (), await self.api.sketches.of(j), self._sight(j)) for j in page]
        return infos if ask.query.page is None else Page(infos, total)

    def _sight(self, job: JobRecord) -> JobStatusView | None:
        sight = self.api.sight(job.id)
        return sight if sight and sight.job.incarnation == job.incarnation else None

    async def _running_from_store(self, asked: Paged) -> object:
        """Answer without a leader: what the records say, health and rates unknown."""
        jobs = [j for j in await self.api.stored_jobs() if j.status not in TERMINAL]
        page, total = _cut(jobs, asked)
        infos = []
        for job in page:
            _, parts, _ = await self.api.stored(job.id)
            infos.append(_info(job, parts, await self.api.sketches.of(job), None))
        return infos if asked.page is None else Page(infos, total)

    async def _live(self, leader: Leader, keeper: JobKeeper) -> JobInfo:
        job = keeper.state
        found = copy.copy(await self._settled(keeper))
        if isinstance(found.watermark, int):
            found.lagSeconds = _lag_s(found.watermark)
        reports = {r.pipeline: r for r in leader.health(job.id)}
        found.checkpointHealth, found.checkpointHealthReason = health_told(job.status, reports)
        ages = [r.age_s for r in reports.values()]
        last_s: float = min((r.checkpoint_at_s for r in reports.values()), default=0.0)
        found.secondsSinceLastCheckpoint = round(max(ages), 3) if ages else None
        found.lastCheckpointTime = date_text(last_s) if last_s else None
        return found

    async def _settled(self, keeper: JobKeeper) -> JobInfo:
        """Return the part that only changes with a record or a heartbeat: most of a long list."""
        job, sight = keeper.state, self.api.sight(keeper.state.id)
        parts = tuple(k.state for _, k in sorted(keeper.pipelines.items()))
        seen = (job, parts, sight.looks if sight else 0)
        known = self._told.get(keeper)
        if known and known[0] == seen:
            return known[1]
        sketch = self.api.sketches.known(job) or await self.api.sketches.of(job)
        found = _info(job, parts, sketch, sight)
        self._told[keeper] = (seen, found)
        return found

    def _short(self, leader: Leader, keeper: JobKeeper, *, full: bool) -> JobSummary:
        job, sight = keeper.state, self.api.sight(keeper.state.id)
        reports = {r.pipeline: r for r in leader.health(job.id)}
        health, _ = health_told(job.status, reports)
        ages = [r.age_s for r in reports.values()]
        found = JobSummary(
            job.id, job.name, job.status.value, date_text(job.since_s), _start(job, sight),
            health, round(max(ages), 3) if ages else None,
        )  # fmt: skip
        if full:
            parts = tuple(k.state for _, k in sorted(keeper.pipelines.items()))
            found.metrics = _metrics(job, parts, sight, committed(parts, sight))
        return found


def date_text(date_s: float) -> str:
    """Return a date as SeaTunnel writes it; "" if there is none."""
    return _second(int(date_s)) if date_s else ""


@lru_cache(8192)
def _second(date_s: int) -> str:
    """Lists ask for the same few dates of each job again and again."""
    return datetime.fromtimestamp(date_s).strftime("%Y-%m-%d %H:%M:%S")


def _cut(found: list[T], asked: Paged) -> tuple[list[T], int]:
    """Return the page that is asked for, and how many there are in all."""
    if asked.page is None:
        return found, len(found)
    if asked.page < 1 or not 1 <= asked.rows <= 1000:
        raise UserError("page counts from 1, and rows is 1 to 1000.", code="request.query")
    first = (asked.page - 1) * asked.rows
    return found[first : first + asked.rows], len(found)


def _lag_s(watermark: int | None) -> float | None:
    return None if watermark is None else round(max(0.0, time.time() - watermark / 1000), 3)


def _start(job: JobRecord, sight: JobStatusView | None) -> str:
    """Return when a job began to run, "" if it has not, or if no living master saw it."""
    return date_text(sight.started_s) if sight else ""


def _info(
    job: JobRecord, parts: tuple[PipelineRecord, ...], sketch: JobGraph, sight: JobStatusView | None
) -> JobInfo:
    """Return a job that is not over, as far as records go."""
    dates = [p.checkpoints.latest.at_s for p in parts if p.checkpoints.latest]
    last_s = min(dates) if dates and len(dates) == len(parts) else 0.0
    marks = [p.commits.watermark for p in parts if p.commits.watermark is not None]
    watermark = min(marks, default=None)
    visible = committed(parts, sight)
    return JobInfo(
        job.id,
        jobName=job.name,
        jobStatus=job.status.value,
        envOptions=msgspec.Raw(sketch.env_json),
        createTime=date_text(job.since_s),
        startTime=_start(job, sight),
        jobDag=msgspec.Raw(sketch.dag),
        pluginJarsUrls=[],
        isStartWithSavePoint=any(p.restore for p in parts),
        metrics=_metrics(job, parts, sight, visible),
        incarnation=job.incarnation,
        lastCheckpointTime=date_text(last_s) if last_s else None,
        secondsSinceLastCheckpoint=None,
        checkpointHealth="UNKNOWN",
        checkpointHealthReason="No leader measures it at this moment.",
        restartCount=restarts_of(parts, sight),
        restartReasons=[
            RestartReason(p.number, f.task, f.attempt, masked_text(f.reason))
            for p in parts
            for f in p.failures
        ],
        explain="",
        sinkGuarantees=[SinkPromise(sink, said) for sink, said in sketch.guarantees.items()],
        committedRows=visible.written if visible else None,
        watermark=watermark,
        lagSeconds=_lag_s(watermark),
    )


def _over(
    job: JobRecord, parts: tuple[PipelineRecord, ...], sketch: JobGraph, sight: JobStatusView | None
) -> JobInfo:
    """Return a job that is over."""
    found = _info(job, parts, sketch, sight)
    found.errorMsg = masked_text(job.reason) if job.status is JobStatus.FAILED else None
    found.finishTime = found.finishedTime = date_text(job.ended_s)
    found.checkpointHealth, found.checkpointHealthReason = "", ""
    found.explain = "" if job.status is not JobStatus.FAILED else f"It failed: {found.errorMsg}"
    found.committedRows = job.totals.written
    found.secondsSinceLastCheckpoint = found.lagSeconds = None
    return found


def _diagnostics(keeper: JobKeeper, sight: JobStatusView | None) -> Diagnostics:
    found = []
    for number, part in sorted(keeper.pipelines.items()):
        stamps: dict[str, int] = {}
        for event in sight.events if sight else ():
            if event.what == "pipeline" and event.pipeline == number:
                stamps[event.status] = int(event.at_s * 1000)
        one = PipelineDiagnostics(
            number, part.state.status.value.upper(), part.state.retries, part.state.retry_times,
            stamps,
        )  # fmt: skip
        found.append(one)
    return Diagnostics(found)


def _metrics(
    job: JobRecord,
    parts: Iterable[PipelineRecord],
    sight: JobStatusView | None,
    visible: Totals | None,
) -> Figures:
    """Return the `metrics` of a job; `visible` is what it has committed, if that is known."""
    over = job.status in TERMINAL
    totals = job.totals if over else _totals(parts)
    read, written = totals.read, totals.written
    ran_s = max(0.001, (job.ended_s if over else time.time()) - job.since_s)
    if sight and not over:
        read = max(read, sum(r.last[1] for r in sight.rates.values()))
        written = max(written, sum(r.last[2] for r in sight.rates.values()))
    read_s, written_s = (read / ran_s, written / ran_s)
    if sight and not over:
        read_s, written_s = sight.rate()
    shown = totals if over else visible or Totals()
    figures: Figures = {
        "IntermediateQueueSize": "0",
        **_four("SourceReceived", read, read_s, 0),
        **_four("SinkWrite", written, written_s, totals.bytes),
        **_four("SinkCommitted", shown.written, shown.written / ran_s, shown.bytes),
    }
    return figures | NO_TABLES | _by_table(_tables(sight), ran_s)


def _by_table(tables: Mapping[str, tuple[int, int]], ran_s: float) -> Figures:
    """Return the figures of each table; rows that sources read are not counted by table."""
    if not tables:
        return {}
    of_all = {
        "Count": {k: str(rows) for k, (rows, _) in tables.items()},
        "QPS": {k: f"{rows / ran_s:.2f}" for k, (rows, _) in tables.items()},
        "Bytes": {k: str(size) for k, (_, size) in tables.items()},
        "BytesPerSeconds": {k: f"{size / ran_s:.2f}" for k, (_, size) in tables.items()},
    }
    kinds = ("TableSinkWrite", "TableSinkCommitted")
    return {f"{kind}{name}": known for kind in kinds for name, known in of_all.items()}


def _totals(parts: Iterable[PipelineRecord]) -> Totals:
    return sum((p.checkpoints.latest.totals for p in parts if p.checkpoints.latest), Totals())


def _four(name: str, rows: int, rows_s: float, size: int) -> dict[str, str]:
    """Return the four figures of one kind.  The bytes that sources read are not counted: 0."""
    each = size / rows if rows else 0.0
    return {
        f"{name}Count": str(rows),
        f"{name}QPS": f"{rows_s:.2f}",
        f"{name}Bytes": str(size),
        f"{name}BytesPerSeconds": f"{rows_s * each:.2f}",
    }


def _tables(sight: JobStatusView | None) -> dict[str, tuple[int, int]]:
    """Return rows and bytes of each table, as the last complete checkpoints count them."""
    found: dict[str, tuple[int, int]] = {}
    counted: list[WrittenRows] = (
        [w for c in sight.checks.values() for w in c.written] if sight else []
    )
    for one in counted:
        key = f"{one.sink.partition('-')[0]}.{one.table}"
        rows, size = found.get(key, (0, 0))
        found[key] = (rows + one.rows, size + one.bytes)
    return found
