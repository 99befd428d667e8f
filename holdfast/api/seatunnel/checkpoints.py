"""SeaTunnel's REST v2 about checkpoints (21, 22) and figures of this moment (24)."""

import msgspec

from holdfast.api.audit import Audit
from holdfast.api.requests import JobsAsked
from holdfast.api.route import ApiRequest, Permission, Route
from holdfast.api.routes.jobs import JobPaths
from holdfast.api.seatunnel.views import (
    CheckpointCounts,
    CheckpointInfo,
    CheckpointOf,
    CheckpointUnderWay,
    EdgeMetrics,
    JobCheckpoints,
    PipelineCheckpoints,
    RealtimeJob,
    VertexMetrics,
)
from holdfast.api.service import Api
from holdfast.api.views import CheckpointView, PartCheckpoints
from holdfast.errors import UserError
from holdfast.plan.masking import masked_text

READ = Permission.READ
KINDS = {
    "periodic": "CHECKPOINT_TYPE",
    "savepoint": "SAVEPOINT_TYPE",
    "final": "COMPLETED_POINT_TYPE",
}
HISTORY_MAX = 32
WINDOW_MS_MAX = 600_000


class HistoryAsked(msgspec.Struct):
    """Which checkpoints: of one pipeline, of one status, at most so many."""

    pipelineId: int | None = None
    limit: int = 20
    status: str = ""


class WindowAsked(msgspec.Struct):
    """Over how long; rates here are those of the last ten seconds."""

    windowMs: int = 180_000


class CheckpointsV2:
    """The handlers."""

    def __init__(self, api: Api, audit: Audit) -> None:
        self.api = api
        self._ours = JobPaths(api, audit)

    def routes(self) -> list[Route]:
        """Return the paths."""
        now = "/metrics/realtime/jobs"
        return [
            Route("GET", "/jobs/checkpoints/{jobId}", READ, self.checkpoints, JobCheckpoints,
                  "21. The checkpoints of a job."),
            Route("GET", "/jobs/checkpoints/history/{jobId}", READ, self.history,
                  list[CheckpointOf], "22. Those that are over.", HistoryAsked),
            Route("GET", now, READ, self.realtime, list[RealtimeJob],
                  "24. How fast each job is.", WindowAsked),
            Route("GET", now + "/{jobId}/edges", READ, self.edges, list[EdgeMetrics],
                  "24. Between the stages of a job.", WindowAsked),
            Route("GET", now + "/{jobId}/vertices", READ, self.vertices, list[VertexMetrics],
                  "24. The stages of a job.", WindowAsked),
        ]  # fmt: skip

    async def checkpoints(self, ask: ApiRequest) -> JobCheckpoints:
        found = await self._ours.checkpoints(ask)
        now_ms = int(self.api.master.ports.clock.date() * 1000)
        return JobCheckpoints(ask.job, now_ms, [_pipeline(p) for p in found.pipelines])

    async def history(self, ask: ApiRequest) -> list[CheckpointOf]:
        asked: HistoryAsked = ask.query
        if not 1 <= asked.limit <= 1000:
            raise UserError("limit is 1 to 1000.", code="request.query")
        found = await self._ours.checkpoints(ask)
        everything = [
            CheckpointOf(p.pipeline, _info(c))
            for p in found.pipelines
            if asked.pipelineId in (None, p.pipeline)
            for c in p.history
        ]
        wanted = [c for c in everything if asked.status in ("", c.checkpoint.status)]
        wanted.sort(key=lambda c: c.checkpoint.completedTimestamp or 0, reverse=True)
        return wanted[: asked.limit]

    async def realtime(self, ask: ApiRequest) -> list[RealtimeJob]:
        window = _window(ask.query)
        jobs = await self.api.jobs(JobsAsked(status="running"))
        return [
            RealtimeJob(j.job_id, j.name, window, j.read_per_s, j.written_per_s) for j in jobs.jobs
        ]

    async def edges(self, ask: ApiRequest) -> list[EdgeMetrics]:
        _window(ask.query)
        sketch = await self.api.sketches.of(await self.api.record(ask.job))
        numbers = {s.id: s.vertex for s in sketch.stages}
        return [
            EdgeMetrics(f"{numbers[i]}->{s.vertex}", s.vertex, None, None, None, None, None)
            for s in sketch.stages
            for i in s.inputs
        ]

    async def vertices(self, ask: ApiRequest) -> list[VertexMetrics]:
        _window(ask.query)
        sketch = await self.api.sketches.of(await self.api.record(ask.job))
        sight = self.api.sight(ask.job)
        rows: dict[str, int] = {}
        for one in (w for c in (sight.checks.values() if sight else ()) for w in c.written):
            rows[one.sink] = rows.get(one.sink, 0) + one.rows
        return [_vertex(s.vertex, rows.get(s.id)) for s in sketch.stages]


def _vertex(vertex: int, rows: int | None) -> VertexMetrics:
    found = VertexMetrics(vertex)
    found.sinkRecordsIn = rows
    return found


def _window(asked: WindowAsked) -> int:
    if not 1 <= asked.windowMs <= WINDOW_MS_MAX:
        raise UserError(f"windowMs is 1 to {WINDOW_MS_MAX}.", code="request.query")
    return asked.windowMs


def _pipeline(part: PartCheckpoints) -> PipelineCheckpoints:
    done = [c for c in part.history if c.outcome == "COMPLETED"]
    failed = [c for c in part.history if c.outcome != "COMPLETED"]
    saved = [c for c in done if c.kind == "savepoint"]
    under, now = part.in_progress, []
    if under:
        now = [
            CheckpointUnderWay(
                under.number, KINDS[under.kind], int(under.started_s * 1000), under.answered,
                under.total,
            )
        ]  # fmt: skip
    counts = CheckpointCounts(part.triggered, part.completed, part.failed, len(now), part.restored)
    return PipelineCheckpoints(
        part.pipeline, counts, _first(done), _first(failed), _first(saved), now,
        [CheckpointOf(part.pipeline, _info(c)) for c in part.history[:HISTORY_MAX]],
    )  # fmt: skip


def _first(found: list[CheckpointView]) -> CheckpointInfo | None:
    return _info(found[0]) if found else None


def _info(one: CheckpointView) -> CheckpointInfo:
    return CheckpointInfo(
        one.number, KINDS[one.kind], one.outcome, _ms(one.started_s), _ms(one.ended_s),
        _ms(one.duration_s), one.size, masked_text(one.reason) or None,
    )  # fmt: skip


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
