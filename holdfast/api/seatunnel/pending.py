"""SeaTunnel's /pending-jobs: which jobs wait to start, and why."""

import msgspec

from holdfast.api.job_snapshot import queue_of, waits_of
from holdfast.api.live_views import workers
from holdfast.api.route import ApiRequest, Permission, Route, TextAnswer
from holdfast.api.seatunnel.views import (
    ClusterSnapshot,
    PendingJob,
    PendingJobs,
    PendingPipeline,
    QueueSummary,
    TaskGroupDiagnostic,
    TaskGroupLocation,
    WorkerSnapshot,
)
from holdfast.api.service import Api
from holdfast.core.job import JobStatus
from holdfast.errors import Unavailable
from holdfast.master.explain import Queue
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader
from holdfast.master.ports import Ports

NO_ROOM = "RESOURCE_NOT_ENOUGH"


class PendingAsked(msgspec.Struct):
    """Which of the jobs that wait: one, or the first few."""

    jobId: str = ""
    limit: int = 0
    pretty: bool = False


class PendingV2:
    """The handler."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def routes(self) -> list[Route]:
        """Return the path."""
        about = "4. Which jobs wait to start, and why."
        return [
            Route(
                "GET",
                "/pending-jobs",
                Permission.READ,
                self.pending,
                PendingJobs,
                about,
                PendingAsked,
            )
        ]

    async def pending(self, ask: ApiRequest) -> object:
        leader = self.api.leading()
        if leader is None:
            raise no_leader()
        asked: PendingAsked = ask.query
        found = _pending(leader, self.api.master.ports, asked.jobId, asked.limit)
        if not asked.pretty:
            return found
        text = msgspec.json.format(msgspec.json.encode(found), indent=2)
        return TextAnswer(text, "application/json;charset=UTF-8")


def _pending(leader: Leader, ports: Ports, only: str, limit: int) -> PendingJobs:
    """Return the jobs that wait, in the order in which they will start."""
    living = [k for k in leader.jobs.values() if k.state.status is JobStatus.PENDING]
    living.sort(key=lambda k: k.order)
    jobs = [_job(leader, k, ports.clock.date()) for k in living]
    dates = [j.enqueueTimestamp for j in jobs]
    summary = QueueSummary(
        len(jobs), "WAIT", min(dates, default=None), max(dates, default=None),
        sum(j.lackingTaskGroups for j in jobs)
    )  # fmt: skip
    wanted = [j for j in jobs if not only or j.jobId == only]
    shown = wanted[:limit] if limit > 0 else wanted
    return PendingJobs(summary, _cluster(leader, ports), shown)


def _cluster(leader: Leader, ports: Ports) -> ClusterSnapshot:
    crew = workers(leader, None, ports.clock.now())
    views = [
        WorkerSnapshot(
            w.worker, w.tags, w.slots, max(0, w.slots - w.used), False,
            _share(w.cpu, w.cores), _share(w.memory, w.memory_total),
            sorted({t.job_id for t in w.tasks})
        )
        for w in crew
    ]  # fmt: skip
    total, used = sum(w.slots for w in crew), sum(w.used for w in crew)
    return ClusterSnapshot(total, max(0, total - used), used, len(crew), views)


def _share(used: float | None, whole: int | None) -> float | None:
    return None if used is None or not whole else round(used / whole, 4)


def _job(leader: Leader, keeper: JobKeeper, now_s: float) -> PendingJob:
    job, queue = keeper.state, queue_of(leader, keeper.state)
    waits = waits_of(leader, job)
    parts = [_pipeline(keeper, number, waits) for number in sorted(keeper.pipelines)]
    lacking = [d for p in parts for d in p.taskGroupDiagnostics if not d.allocated]
    total = sum(p.totalTaskGroups for p in parts)
    restored = any(k.state.restore for k in keeper.pipelines.values())
    message = lacking[0].failureMessage if lacking else None
    return PendingJob(
        job.id, job.name, "RESTORE" if restored else "SUBMIT", job.status.value,
        int(job.since_s * 1000), int(now_s * 1000), int(max(0.0, now_s - job.since_s) * 1000), 1,
        total, total - len(lacking), len(lacking), NO_ROOM if lacking else None, message,
        dict(job.tags), _blocking(leader, keeper, queue), parts, lacking
    )  # fmt: skip


def _blocking(leader: Leader, keeper: JobKeeper, queue: Queue) -> list[str]:
    """Return the jobs that wait before this one; the first waits for those that hold slots."""
    ahead = [
        k.state.id
        for k in sorted(leader.jobs.values(), key=lambda k: k.order)
        if k.state.status is JobStatus.PENDING and k.order < keeper.order
    ]
    return ahead or [name for name, _ in queue.holders]


def _pipeline(keeper: JobKeeper, number: int, waits: dict[tuple[int, str], str]) -> PendingPipeline:
    job, tasks = keeper.state, keeper.pipelines[number].state.tasks
    told = []
    for task in tasks:
        why = waits.get((number, task.id), "it is being placed")
        said = None if task.live else why
        one = TaskGroupDiagnostic(
            TaskGroupLocation(job.id, number, task.id), f"{job.name} / {number} / {task.id}",
            task.live, None if task.live else NO_ROOM, said
        )  # fmt: skip
        told.append(one)
    there = sum(t.live for t in tasks)
    return PendingPipeline(
        number, f"Pipeline {number}", len(tasks), there, len(tasks) - there, told
    )


def no_leader() -> Unavailable:
    return Unavailable(
        "No master leads at this moment, and only a leader knows this. Ask again in a moment.",
        code="master.no_leader",
    )
