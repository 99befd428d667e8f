"""Metrics of this master and, while it leads, of its jobs.

Everything is counted at the moment it is asked for, from memory.  A job that is gone is gone from
here, and at most `JOBS_MAX` jobs have series of their own, so the number of series is bounded.
"""

import os
import resource
import time
from collections import Counter
from importlib.metadata import version

from holdfast.api.live_views import workers
from holdfast.api.metrics import METRICS, OPENMETRICS, PROMETHEUS, Family, written
from holdfast.api.observe import BUCKETS_S, Latency, ObservedBlobs, ObservedStore
from holdfast.api.route import ApiRequest, Permission, Route, TextAnswer
from holdfast.api.service import Api
from holdfast.api.status_board import JobStatusView
from holdfast.core.job import JobStatus
from holdfast.master.health import Health
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader

JOBS_MAX = 1_000
HEALTH = {Health.OK: 0, Health.LATE: 1, Health.STALLED: 2}
TYPES = {
    "canceled": "CANCELED", "cancelling": "CANCELING", "created": "PENDING", "failed": "FAILED",
    "failing": "FAILING", "finished": "FINISHED", "running": "RUNNING", "scheduled": "SCHEDULED",
}  # fmt: skip
"""SeaTunnel's words for `job_count`."""

Families = dict[str, Family]


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
        """Return everything that is counted here; a family without samples is not written."""
        found = {m.name: Family(m.name, m.kind, m.about) for m in METRICS}
        leader = self.api.leading()
        self._process(found, leader)
        self._latencies(found)
        self._lineage(found)
        if leader:
            rows = (await self.api.jobs()).jobs
            _cluster(found, leader, self.api, Counter(r.status for r in rows))
            _jobs(found, leader, self.api)
        return list(found.values())

    def _process(self, found: Families, leader: Leader | None) -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        name = self.api.master.name
        found["holdfast_info"].add(1, version=version("holdfast"), master=name)
        found["holdfast_leads"].add(int(leader is not None))
        found["holdfast_term"].add(leader.desk.number if leader else 0)
        found["process_resident_memory_bytes"].add(usage.ru_maxrss * 1024)
        found["process_cpu_seconds"].add(usage.ru_utime + usage.ru_stime)
        found["process_start_time_seconds"].add(self._begun_s)
        if os.path.isdir("/proc/self/fd"):  # noqa: PTH112  only on Linux
            found["process_open_fds"].add(len(os.listdir("/proc/self/fd")))  # noqa: PTH208

    def _latencies(self, found: Families) -> None:
        store, blobs = self.api.master.store, self.api.blobs
        if isinstance(store, ObservedStore):
            for call, latency in (("read", store.reads), ("write", store.writes)):
                _add(found, "holdfast_store", latency, call)
        if isinstance(blobs, ObservedBlobs):
            _add(found, "holdfast_blob", blobs.writes, "put")

    def _lineage(self, found: Families) -> None:
        """Count what was sent to a lineage server, where there is one."""
        lineage = self.api.lineage
        if lineage is None:
            return
        found["holdfast_lineage_events"].add(lineage.sent, outcome="sent")
        found["holdfast_lineage_events"].add(lineage.dropped, outcome="dropped")
        found["holdfast_lineage_failures"].add(lineage.failures)
        found["holdfast_lineage_waiting"].add(lineage.waiting)


def _add(found: Families, name: str, latency: Latency, call: str) -> None:
    found[f"{name}_seconds"].add_histogram(
        BUCKETS_S, latency.counts, latency.number, latency.total_s, call=call
    )
    found[f"{name}_failures"].add(latency.failures, call=call)


def _cluster(found: Families, leader: Leader, api: Api, statuses: Counter[str]) -> None:
    crew = workers(leader, None, api.master.ports.clock.now())
    for status in JobStatus:
        found["holdfast_jobs"].add(statuses.get(status.value, 0), status=status.value)
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
        found["holdfast_jobs_health"].add(counts.get(one, 0), health=one.value)
    found["holdfast_slots"].add(sum(w.slots for w in crew))
    found["holdfast_slots_used"].add(sum(w.used for w in crew))
    found["holdfast_workers"].add(len(crew))
    found["holdfast_workers_draining"].add(sum(bool(w.draining) for w in crew))
    found["holdfast_jobs_set_aside"].add(len(leader.quarantined))
    for kind, word in TYPES.items():
        found["job_count"].add(statuses.get(word, 0), type=kind)
    found["node_count"].add(len(crew) + 1)
    for worker in crew:
        own = {"worker": worker.worker}
        found["holdfast_worker_spark_silent_seconds"].add(worker.silent_s, **own)
        if worker.cpu is not None and worker.memory is not None:
            found["holdfast_worker_cpu_cores"].add(worker.cpu, **own)
            found["holdfast_worker_memory_bytes"].add(worker.memory, **own)


def _jobs(found: Families, leader: Leader, api: Api) -> None:
    living = sorted((k for k in leader.jobs.values() if not k.terminal), key=lambda k: k.order)
    for keeper in living[:JOBS_MAX]:
        sight = api.board.lives.get(keeper.state.id)
        _job(found, leader, keeper, sight, api.default_interval_s)
    found["holdfast_metrics_jobs_left_out"].add(max(0, len(living) - JOBS_MAX))


def _job(
    found: Families, leader: Leader, keeper: JobKeeper, sight: JobStatusView | None,
    interval_s: float,
) -> None:  # fmt: skip
    job = keeper.state
    labels = {"job": job.id, "name": job.name[:100]}
    for report in leader.health(job.id):
        number = str(report.pipeline)
        state = keeper.pipelines[report.pipeline].state
        checks = sight.checks.get(report.pipeline) if sight else None
        own = {**labels, "pipeline": number}
        found["holdfast_job_health"].add(HEALTH[report.health], **own)
        found["holdfast_job_checkpoint_age_seconds"].add(round(report.age_s, 3), **own)
        found["holdfast_job_commit_age_seconds"].add(round(report.commit_age_s, 3), **own)
        if state.policy.periodic:
            found["holdfast_job_checkpoint_interval_seconds"].add(
                state.policy.interval_s or interval_s, **own
            )
        latest = state.checkpoints.latest
        found["holdfast_job_rows_rejected"].add(latest.totals.rejected if latest else 0, **own)
        found["holdfast_job_rows_written"].add(latest.totals.written if latest else 0, **own)
        found["holdfast_job_bytes_written"].add(latest.totals.bytes if latest else 0, **own)
        found["holdfast_job_checkpoint_failures_in_a_row"].add(
            state.checkpoints.failed_in_a_row, **own
        )
        found["holdfast_job_retries"].add(state.retries, **own)
        read = max(latest.totals.read if latest else 0, _ahead(sight, report.pipeline))
        found["holdfast_job_rows_read"].add(read, **own)
        if state.commits.watermark is not None:
            lag_s = max(0.0, time.time() - state.commits.watermark / 1000)
            found["holdfast_job_lag_seconds"].add(round(lag_s, 3), **own)
        if checks:
            found["holdfast_job_rows_committed"].add(checks.committed.written, **own)
            found["holdfast_job_checkpoints"].add(checks.completed, **own, outcome="completed")
            found["holdfast_job_checkpoints"].add(checks.failed, **own, outcome="failed")
            found["holdfast_job_checkpoint_seconds"].add(round(checks.seconds, 4), **own)
            done = next((c for c in reversed(checks.done) if c.outcome == "COMPLETED"), None)
            if done and done.duration_s is not None:
                found["holdfast_job_checkpoint_duration_seconds"].add(done.duration_s, **own)
            if done and done.size is not None:
                found["holdfast_job_checkpoint_size_bytes"].add(done.size, **own)
    found["holdfast_job_restarts"].add(sight.restarts if sight else 0, **labels)


def _ahead(sight: JobStatusView | None, pipeline: int) -> int:
    rates = sight.rates.items() if sight else ()
    return sum(r.last[1] for (number, _), r in rates if number == pipeline)
