"""Metrics of this master and, while it leads, of its jobs.

Everything is counted at the moment it is asked for, from memory.  A job that is gone is gone from
here, and at most `JOBS_MAX` jobs have series of their own, so the number of series is bounded.
"""

import os
import resource
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

from holdfast.api.live_views import workers
from holdfast.api.observe import BUCKETS_S, Latency, ObservedBlobs, ObservedStore
from holdfast.api.route import ApiRequest, Permission, Route, TextAnswer
from holdfast.api.service import Api
from holdfast.api.status_board import JobStatusView
from holdfast.api.views import WorkerView
from holdfast.core.job import JobStatus
from holdfast.master.health import Health
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
Labels = Mapping[str, str]

JOBS_MAX = 1_000
HEALTH = {Health.OK: 0, Health.LATE: 1, Health.STALLED: 2}
TYPES = {
    "canceled": "CANCELED", "cancelling": "CANCELING", "created": "PENDING", "failed": "FAILED",
    "failing": "FAILING", "finished": "FINISHED", "running": "RUNNING", "scheduled": "SCHEDULED",
}  # fmt: skip
"""SeaTunnel's words for `job_count`."""

JOB_FAMILIES = {
    "health": ("gauge", "0: OK, 1: LATE, 2: STALLED, by the ages of checkpoint and commit."),
    "commit_age_seconds": (
        "gauge",
        "How long the oldest checkpoint is complete and not visible or heard of; 0: none.",
    ),
    "checkpoint_age_seconds": ("gauge", "Time since the last complete checkpoint."),
    "checkpoint_interval_seconds": ("gauge", "How often a checkpoint is due."),
    "checkpoint_duration_seconds": ("gauge", "How long the last complete checkpoint took."),
    "checkpoint_size_bytes": ("gauge", "How large the last complete checkpoint's blob is."),
    "checkpoints": ("counter", "Checkpoints by outcome, since this leader took over."),
    "checkpoint_seconds": ("counter", "Time spent on complete checkpoints."),
    "checkpoint_failures_in_a_row": ("gauge", "Checkpoints that failed since the last complete."),
    "rows_read": ("counter", "Rows read, as far as workers have told."),
    "rows_rejected": ("counter", "Rows read and left out (row_error_handle_way = SKIP)."),
    "rows_written": ("counter", "Rows written by complete checkpoints."),
    "rows_committed": ("counter", "Rows that are visible."),
    "bytes_written": ("counter", "Bytes written by complete checkpoints."),
    "lag_seconds": ("gauge", "Time between the watermark and now."),
    "restarts": ("counter", "How often tasks were started anew: lost or failed attempts."),
    "retries": ("gauge", "Retries that were used up."),
}


@dataclass
class Family:
    """A metric: its name without `_total`, its kind, what it says, and its samples."""

    name: str
    kind: str
    about: str
    samples: list[tuple[str, Labels, float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        """Add a sample of a gauge or a counter."""
        self.samples.append(("_total" if self.kind == "counter" else "", labels, value))

    def add_histogram(
        self, bounds: Sequence[float], counts: Sequence[int], number: int, total: float,
        **labels: str,
    ) -> None:  # fmt: skip
        """Add a histogram; `counts` are cumulative."""
        for bound, count in zip(bounds, counts, strict=True):
            self.samples.append(("_bucket", {**labels, "le": _number(bound)}, count))
        self.samples.append(("_bucket", {**labels, "le": "+Inf"}, number))
        self.samples.append(("_count", labels, number))
        self.samples.append(("_sum", labels, total))


class MetricPaths:
    """The handlers."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._begun_s = time.time()

    def routes(self) -> list[Route]:
        """Return the paths."""
        about = "18. Metrics for Prometheus."
        return [
            Route("GET", "/metrics", Permission.READ, self.metrics, TextAnswer, about, leads=False),
            Route("GET", "/openmetrics", Permission.READ, self.openmetrics, TextAnswer,
                  "18. The same as OpenMetrics.", leads=False),
        ]  # fmt: skip

    async def metrics(self, ask: ApiRequest) -> TextAnswer:
        return TextAnswer(written(await self.families(), openmetrics=False), PROMETHEUS)

    async def openmetrics(self, ask: ApiRequest) -> TextAnswer:
        return TextAnswer(written(await self.families(), openmetrics=True), OPENMETRICS)

    async def families(self) -> list[Family]:
        """Return everything that is counted here."""
        leader = self.api.leading()
        found = [*self._process(leader), *self._latencies(), *self._lineage()]
        if leader:
            rows = (await self.api.jobs()).jobs
            found += _cluster(leader, self.api, Counter(r.status for r in rows))
            found += _jobs(leader, self.api)
        return found

    def _process(self, leader: Leader | None) -> list[Family]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        info = Family("holdfast_info", "gauge", "This master; the value is always 1.")
        info.add(1, version=version("holdfast"), master=self.api.master.name)
        leads = Family("holdfast_leads", "gauge", "1 if this master leads.")
        leads.add(int(leader is not None))
        term = Family("holdfast_term", "gauge", "Its term as leader, counted from 1.")
        term.add(leader.desk.number if leader else 0)
        memory = Family("process_resident_memory_bytes", "gauge", "The most memory it has used.")
        memory.add(usage.ru_maxrss * 1024)
        cpu = Family("process_cpu_seconds", "counter", "Processor time it has used.")
        cpu.add(usage.ru_utime + usage.ru_stime)
        begun = Family("process_start_time_seconds", "gauge", "When it was started.")
        begun.add(self._begun_s)
        files = Family("process_open_fds", "gauge", "Files and sockets it has open.")
        if os.path.isdir("/proc/self/fd"):  # noqa: PTH112  only Linux tells
            files.add(len(os.listdir("/proc/self/fd")))  # noqa: PTH208
        return [info, leads, term, memory, cpu, begun, files]

    def _latencies(self) -> list[Family]:
        store, blobs = self.api.master.store, self.api.blobs
        took = Family("holdfast_store_seconds", "histogram", "How long the store took.")
        failed = Family("holdfast_store_failures", "counter", "Calls the store did not answer.")
        if isinstance(store, ObservedStore):
            for call, latency in (("read", store.reads), ("write", store.writes)):
                _add(took, failed, latency, call)
        put = Family("holdfast_blob_seconds", "histogram", "How long storing a blob took.")
        lost = Family("holdfast_blob_failures", "counter", "Blobs that were not stored.")
        if isinstance(blobs, ObservedBlobs):
            _add(put, lost, blobs.writes, "put")
        return [took, failed, put, lost]

    def _lineage(self) -> list[Family]:
        """Return how telling a lineage server goes, where there is one."""
        lineage = self.api.lineage
        if lineage is None:
            return []
        events = Family("holdfast_lineage_events", "counter", "Lineage events: sent, dropped.")
        events.add(lineage.sent, outcome="sent")
        events.add(lineage.dropped, outcome="dropped")
        failed = Family("holdfast_lineage_failures", "counter", "Tries that failed.")
        failed.add(lineage.failures)
        waiting = Family("holdfast_lineage_waiting", "gauge", "Lineage events to be sent.")
        waiting.add(lineage.waiting)
        return [events, failed, waiting]


def _add(took: Family, failed: Family, latency: Latency, call: str) -> None:
    took.add_histogram(BUCKETS_S, latency.counts, latency.number, latency.total_s, call=call)
    failed.add(latency.failures, call=call)


def _cluster(leader: Leader, api: Api, statuses: Counter[str]) -> list[Family]:
    crew = workers(leader, None, api.master.ports.clock.now())
    jobs = Family("holdfast_jobs", "gauge", "Jobs by status.")
    for status in JobStatus:
        jobs.add(statuses.get(status.value, 0), status=status.value)
    health = Family("holdfast_jobs_health", "gauge", "Jobs that are not over, by health.")
    counts = Counter(
        max(
            (r.health for r in leader.health(k.state.id)),
            key=lambda h: HEALTH[h],
            default=Health.OK,
        )
        for k in leader.jobs.values()
        if not k.terminal
    )
    for one in Health:
        health.add(counts.get(one, 0), health=one.value)
    slots = Family("holdfast_slots", "gauge", "Slots of all workers.")
    slots.add(sum(w.slots for w in crew))
    used = Family("holdfast_slots_used", "gauge", "Slots that tasks are placed on.")
    used.add(sum(w.used for w in crew))
    there = Family("holdfast_workers", "gauge", "Workers in contact.")
    there.add(len(crew))
    draining = Family("holdfast_workers_draining", "gauge", "Workers that get no task.")
    draining.add(sum(bool(w.draining) for w in crew))
    aside = Family("holdfast_jobs_set_aside", "gauge", "Jobs whose records are damaged.")
    aside.add(len(leader.quarantined))
    theirs = Family("job_count", "gauge", "Jobs, in SeaTunnel's words.")
    for kind, word in TYPES.items():
        theirs.add(statuses.get(word, 0), type=kind)
    nodes = Family("node_count", "gauge", "Nodes, in SeaTunnel's words: workers and the leader.")
    nodes.add(len(crew) + 1)
    return [jobs, health, slots, used, there, draining, aside, theirs, nodes, *_loads(crew)]


def _loads(crew: list[WorkerView]) -> list[Family]:
    cpu = Family("holdfast_worker_cpu_cores", "gauge", "Cores that a worker and its Spark use.")
    memory = Family("holdfast_worker_memory_bytes", "gauge", "Memory that they use.")
    silent = Family(
        "holdfast_worker_spark_silent_seconds", "gauge", "How long a worker's Spark is silent."
    )  # fmt: skip
    for worker in crew:
        silent.add(worker.silent_s, worker=worker.worker)
        if worker.cpu is not None and worker.memory is not None:
            cpu.add(worker.cpu, worker=worker.worker)
            memory.add(worker.memory, worker=worker.worker)
    return [cpu, memory, silent]


def _jobs(leader: Leader, api: Api) -> list[Family]:
    families = {
        name: Family(f"holdfast_job_{name}", kind, about)
        for name, (kind, about) in JOB_FAMILIES.items()
    }
    living = sorted((k for k in leader.jobs.values() if not k.terminal), key=lambda k: k.order)
    for keeper in living[:JOBS_MAX]:
        _job(families, leader, keeper, api.sight(keeper.state.id), api.default_interval_s)
    left = Family("holdfast_metrics_jobs_left_out", "gauge", "Jobs too many to have series here.")
    left.add(max(0, len(living) - JOBS_MAX))
    return [*families.values(), left]


def _job(
    families: dict[str, Family], leader: Leader, keeper: JobKeeper, sight: JobStatusView | None,
    interval_s: float,
) -> None:  # fmt: skip
    job = keeper.state
    labels = {"job": job.id, "name": job.name[:100]}
    for report in leader.health(job.id):
        number = str(report.pipeline)
        state = keeper.pipelines[report.pipeline].state
        checks = sight.checks.get(report.pipeline) if sight else None
        own = {**labels, "pipeline": number}
        families["health"].add(HEALTH[report.health], **own)
        families["checkpoint_age_seconds"].add(round(report.age_s, 3), **own)
        families["commit_age_seconds"].add(round(report.commit_age_s, 3), **own)
        if state.policy.periodic:
            families["checkpoint_interval_seconds"].add(
                state.policy.interval_s or interval_s, **own
            )
        latest = state.checkpoints.latest
        families["rows_rejected"].add(latest.totals.rejected if latest else 0, **own)
        families["rows_written"].add(latest.totals.written if latest else 0, **own)
        families["bytes_written"].add(latest.totals.bytes if latest else 0, **own)
        families["checkpoint_failures_in_a_row"].add(state.checkpoints.failed_in_a_row, **own)
        families["retries"].add(state.retries, **own)
        read = max(latest.totals.read if latest else 0, _ahead(sight, report.pipeline))
        families["rows_read"].add(read, **own)
        if state.commits.watermark is not None:
            lag_s = max(0.0, time.time() - state.commits.watermark / 1000)
            families["lag_seconds"].add(round(lag_s, 3), **own)
        if checks:
            families["rows_committed"].add(checks.committed.written, **own)
            families["checkpoints"].add(checks.completed, **own, outcome="completed")
            families["checkpoints"].add(checks.failed, **own, outcome="failed")
            families["checkpoint_seconds"].add(round(checks.seconds, 4), **own)
            done = next((c for c in reversed(checks.done) if c.outcome == "COMPLETED"), None)
            if done and done.duration_s is not None:
                families["checkpoint_duration_seconds"].add(done.duration_s, **own)
            if done and done.size is not None:
                families["checkpoint_size_bytes"].add(done.size, **own)
    families["restarts"].add(sight.restarts if sight else 0, **labels)


def _ahead(sight: JobStatusView | None, pipeline: int) -> int:
    rates = sight.rates.items() if sight else ()
    return sum(r.last[1] for (number, _), r in rates if number == pipeline)


def written(families: Iterable[Family], *, openmetrics: bool) -> bytes:
    """Return all metrics as text."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        plain = "_total" if family.kind == "counter" and not openmetrics else ""
        lines.append(f"# HELP {family.name}{plain} {_escaped(family.about)}")
        lines.append(f"# TYPE {family.name}{plain} {family.kind}")
        for suffix, labels, value in family.samples:
            pairs = ",".join(f'{k}="{_escaped(v)}"' for k, v in labels.items())
            inside = f"{{{pairs}}}" if pairs else ""
            lines.append(f"{family.name}{suffix}{inside} {_number(value)}")
    if openmetrics:
        lines.append("# EOF")
    return ("\n".join(lines) + "\n").encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
