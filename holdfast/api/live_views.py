"""Turn what the leader knows of a job into the answers of the API."""

import time
from collections.abc import Iterable, Mapping
from importlib.metadata import version

from holdfast.api.job_graph import JobGraph
from holdfast.api.status_board import JobStatusView, Rate, StatusBoard
from holdfast.api.views import (
    ClusterView,
    FailureView,
    HeldView,
    JobDetail,
    PipelineView,
    TaskView,
    WorkerView,
)
from holdfast.core.checkpoint import Totals
from holdfast.core.job import TERMINAL, JobRecord, JobStatus
from holdfast.core.pipeline import OVER, PipelineRecord
from holdfast.core.task import TaskRecord
from holdfast.master.health import HealthReport, health_word
from holdfast.master.leader import Leader
from holdfast.master.master import Master
from holdfast.plan.masking import masked_text
from holdfast.wire.messages import MachineLoad, TaskReport


def health_told(status: JobStatus, reports: Mapping[int, HealthReport]) -> tuple[str, str]:
    """Return a job's health in a word ("": there is nothing to judge), and the reason."""
    word, reason = health_word(status, reports)
    return word, masked_text(reason)


def detail(
    job: JobRecord,
    pipelines: Iterable[PipelineRecord],
    *,
    revision: int,
    leader: str,
    reports: Mapping[int, HealthReport] | None = None,
    held: Mapping[tuple[int, str], TaskReport] | None = None,
    waits: Mapping[tuple[int, str], str] | None = None,
    live: bool = False,
    sight: JobStatusView | None = None,
    sketch: JobGraph | None = None,
) -> JobDetail:
    """Return all about a job, from its records and, if `live`, from heartbeats."""
    parts = list(pipelines)
    views = [_pipeline(p, job.status, reports or {}, held or {}, waits or {}, sight) for p in parts]
    health, reason = health_told(job.status, reports or {})
    tasks = [t for v in views for t in v.tasks]
    done = [p.checkpoints.latest.totals for p in parts if p.checkpoints.latest]
    over = job.status in TERMINAL
    marks = [p.commits.watermark for p in parts if p.commits.watermark is not None]
    ages = [v.checkpoint_age_s for v in views if v.checkpoint_age_s is not None]
    owed = [v.commit_age_s for v in views if v.commit_age_s is not None]
    dates = [v.checkpoint_at_s for v in views]
    return JobDetail(
        job.id, job.incarnation, job.name, job.status.value, masked_text(job.reason), job.since_s,
        job.ended_s, health,
        job.totals.read if over else max(sum(d.read for d in done), sum(t.read for t in tasks)),
        job.totals.written if over else sum(d.written for d in done),
        job.totals.bytes if over else sum(d.bytes for d in done),
        live, revision, leader, views,
        health_reason=reason,
        checkpoint_at_s=min(dates, default=0.0),
        checkpoint_age_s=max(ages, default=None),
        commit_age_s=max(owed, default=None),
        started_s=sight.started_s if sight else 0.0,
        mode=sketch.mode if sketch else "",
        file=sketch.file if sketch else "",
        guarantees=sketch.guarantees if sketch else {},
        committed_rows=_committed_rows(job, parts, sight),
        watermark_ms=min(marks, default=None),
        lag_s=round(max(0.0, time.time() - min(marks) / 1000), 3) if marks and not over else None,
        restarts=restarts_of(parts, sight),
        read_per_s=round(sum(t.read_per_s for t in tasks), 3),
        written_per_s=round(sum(t.written_per_s for t in tasks), 3),
        from_savepoint=any(p.restore for p in parts),
        rejected=(
            job.totals.rejected
            if over
            else max(sum(d.rejected for d in done), sum(t.rejected for t in tasks))
        ),
    )  # fmt: skip


def workers(leader: Leader, board: StatusBoard | None, now_s: float) -> list[WorkerView]:
    """Return the workers in contact, with what each holds."""
    used: dict[str, int] = {}
    for keeper in leader.jobs.values():
        tasks = [t for p in keeper.pipelines.values() for t in p.state.tasks]
        for task in tasks if not keeper.terminal else ():
            if task.live and task.place:
                used[task.place.incarnation] = used.get(task.place.incarnation, 0) + task.slots
    return [
        WorkerView(
            seen.hello.worker, incarnation, seen.hello.slots, len(seen.hello.held),
            dict(seen.hello.tags), round(now_s - seen.at_s, 3), used.get(incarnation, 0),
            [_held(h, board, _moves(leader, incarnation, h)) for h in seen.hello.held],
            *_load(seen.hello.load), leader.drains.reason(seen.hello), seen.hello.trouble,
            round(seen.hello.silent_s, 3),
        )
        for incarnation, seen in sorted(leader.crew.seen.items())
    ]  # fmt: skip


def cluster_view(leader: Leader, master: Master, board: StatusBoard) -> ClusterView:
    """Return who leads and who works."""
    crew = workers(leader, board, master.ports.clock.now())
    return ClusterView(
        master.name, master.url, leader.desk.number, crew, dict(leader.quarantined),
        sum(w.slots for w in crew), sum(w.used for w in crew), version("holdfast"),
        sorted(leader.drains.names),
    )  # fmt: skip


def _load(load: MachineLoad | None) -> tuple[float | None, int | None, int | None, int | None]:
    if load is None:
        return None, None, None, None
    return load.cpu, load.cores, load.memory, load.memory_total


def _moves(leader: Leader, incarnation: str, held: TaskReport) -> str:
    task = leader.roster.on(incarnation).get(held.key)
    return leader.drains.moves(held.key, task) if task and task.attempt == held.attempt else ""


def _held(held: TaskReport, board: StatusBoard | None, moves: str) -> HeldView:
    key = held.key
    sight = board.lives.get(key.job) if board else None
    rate = sight.rates.get((key.pipeline, key.task)) if sight else None
    read, written = rate.per_second() if rate else (0.0, 0.0)
    return HeldView(
        key.job, key.pipeline, key.task, held.attempt, held.read, held.written, round(read, 3),
        round(written, 3), masked_text(held.failure or ""), moves,
    )  # fmt: skip


def _pipeline(
    pipeline: PipelineRecord,
    status: JobStatus,
    reports: Mapping[int, HealthReport],
    held: Mapping[tuple[int, str], TaskReport],
    waits: Mapping[tuple[int, str], str],
    sight: JobStatusView | None,
) -> PipelineView:
    number, latest = pipeline.number, pipeline.checkpoints.latest
    report = reports.get(number)
    judged = {number: report} if report and pipeline.status not in OVER else {}
    checks = sight.checks.get(number) if sight else None
    rates = sight.rates if sight else {}
    return PipelineView(
        number,
        pipeline.status.value,
        health_told(status, judged)[0],
        latest.number if latest else 0,
        latest.at_s if latest else 0.0,
        round(report.age_s, 3) if report else None,
        pipeline.commits.through,
        masked_text(report.reason) if report else "",
        pipeline.retries,
        [
            _task(
                t,
                held.get((number, t.id)),
                waits.get((number, t.id), ""),
                rates.get((number, t.id)),
            )
            for t in pipeline.tasks
        ],
        [FailureView(f.task, f.attempt, masked_text(f.reason)) for f in pipeline.failures],
        pipeline.policy.periodic,
        pipeline.policy.interval_s,
        checks.committed.written if checks else None,
        pipeline.commits.watermark,
        pipeline.retry_times,
        list(pipeline.sinks),
        report.commit if report else 0,
        round(report.commit_age_s, 3) if report and report.commit else None,
    )


def _task(task: TaskRecord, held: TaskReport | None, waits: str, rate: Rate | None) -> TaskView:
    place = task.place
    known = held if held and held.attempt == task.attempt else None
    counts = (known.read, known.written) if known else (0, 0)
    read, written = rate.per_second() if rate else (0.0, 0.0)
    return TaskView(
        task.id, task.status.value, task.attempt, task.slots,
        place.worker if place else "", place.incarnation if place else "", *counts, waits,
        round(read, 3), round(written, 3), known.rejected if known else 0,
    )  # fmt: skip


def committed(parts: Iterable[PipelineRecord], sight: JobStatusView | None) -> Totals | None:
    """Return what is visible; None where the checkpoint that knew is gone."""
    if sight and sight.checks:
        return sum((c.committed for c in sight.checks.values()), Totals())
    found = Totals()
    for part in parts:
        through = part.commits.through
        known = next((c for c in part.checkpoints.kept if c.number == through), None)
        if through and known is None:
            return None
        found += known.totals if known else Totals()
    return found


def _committed_rows(
    job: JobRecord, parts: list[PipelineRecord], sight: JobStatusView | None
) -> int | None:
    if job.status in TERMINAL and not (sight and sight.checks):
        return job.totals.written
    visible = committed(parts, sight)
    return visible.written if visible else None


def restarts_of(parts: Iterable[PipelineRecord], sight: JobStatusView | None) -> int:
    """Return how often tasks were started again because an attempt was lost or failed."""
    if sight:
        return sight.restarts
    return sum(t.restarts for p in parts for t in p.tasks)
