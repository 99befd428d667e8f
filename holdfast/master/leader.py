"""Lead for one term: load every record, keep them all, listen to workers, place tasks.

Taking over is nothing special: the records are loaded, and each keeper does what its record owes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.core.completion import SourceEnded
from holdfast.core.job import CancelAsked, Job, JobStatus, SavepointWanted
from holdfast.core.pipeline import Pipeline
from holdfast.core.placement import Wanted, place
from holdfast.core.task import (
    Place,
    Task,
    TaskFailed,
    TaskPlaced,
    TaskStarted,
    TaskStatus,
    WorkerLost,
)
from holdfast.errors import Fenced, Unavailable, UserError
from holdfast.master.crew import Crew
from holdfast.master.desk import Desk
from holdfast.master.health import Report, newest
from holdfast.master.history import trim
from holdfast.master.job_keeper import JobKeeper, load_trails
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.records import R, RecordUnreadable, decode, encode, job_key, pipeline_key
from holdfast.master.roster import Roster, hangs
from holdfast.master.wait import unhurried
from holdfast.store.contract import Guard, Item, Put
from holdfast.wire.messages import (
    BarrierAck,
    EndConfirmed,
    EndReport,
    Held,
    Hello,
    StopTask,
    TaskKey,
    ToLeader,
    Welcome,
)

BURIED_MAX = 200
"""So many jobs may be buried before the history is read, to forget the oldest."""


class Leader:
    """Everything one master does while it leads in one term."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.jobs: dict[str, JobKeeper] = {}
        self.crew = Crew(desk.ports.clock.now())
        self.roster = Roster()
        self.waits: dict[TaskKey, str] = {}
        self.quarantined: dict[str, str] = {}
        self.loaded = False
        self._changed = asyncio.Event()
        self._moved: dict[str, None] = {}
        self._buried = 0
        self._beside: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Load all records and start keeping them."""
        try:
            await self._load()
        except RecordUnreadable as error:
            self.desk.refuse(error)
            return
        # Nothing may be answered or ordered before: what is not loaded would seem not to exist.
        self.loaded = True
        async for keeper in unhurried(list(self.jobs.values())):
            self._start(keeper)
        tell_time = partial(self.desk.tell_time, lambda: any(self._keepers()))
        for work in (self._place_loop, self._lost_loop, tell_time):
            task = asyncio.ensure_future(self.until_fenced(work))
            task.add_done_callback(self.desk.watch)
            self._beside.append(task)

    async def _load(self) -> None:
        await self.desk.read_time()
        jobs = await self.desk.read_range("job/")
        pipelines = await self.desk.read_range("pipeline/")
        async for item in unhurried(jobs):
            job = self._decoded(Job, item)
            if job:
                self._keep_job(job, item.revision, item.created)
        async for item in unhurried(pipelines):
            pipeline = self._decoded(Pipeline, item)
            if pipeline:
                self.desk.time.at_least(newest(pipeline))
                self._keep_pipeline(pipeline, item.revision)
        self._set_aside_parts()
        await load_trails(self.desk, self.jobs.values())

    def close(self) -> None:
        """Stop everything of this term."""
        for task in self._beside:
            task.cancel()
        for keeper in self.jobs.values():
            keeper.close()

    async def submit(self, job: Job, pipelines: tuple[Pipeline, ...]) -> None:
        """Accept a job: its record and its pipelines' in one transaction.

        The same submit again (same token) is answered yes; any other job of that id is refused
        for as long as the id is in use, its tombstone included.
        """
        self._check_loaded()
        self._check_whole(job.id)
        known = self.jobs.get(job.id)
        if known:
            if known.state.token == job.token:
                await self.desk.confirm(known.key, known.revision)
                return
            raise UserError(known.in_use(), code="job.exists")
        since_s, clock_s = self.desk.ports.clock.date(), self.desk.time.now()
        job = replace(job, since_s=since_s)
        pipelines = tuple(replace(p, since_s=since_s, clock_s=clock_s) for p in pipelines)
        key = job_key(job.id)
        keys = [key, *(pipeline_key(p.job, p.number) for p in pipelines)]
        values = [encode(job), *(encode(p) for p in pipelines)]
        puts = [Put(k, v) for k, v in zip(keys, values, strict=True)]
        revision = await self.desk.write([Guard(k, 0) for k in keys], puts, key, "job.submit")
        self._keep_job(job, revision, revision)
        for pipeline in pipelines:
            self._keep_pipeline(pipeline, revision)
        self._start(self.jobs[job.id])

    async def cancel(self, job: str) -> None:
        """Make a cancel durable.  Answered yes for a job that is over already."""
        await self._want(job, CancelAsked())

    async def savepoint(self, job: str, request: str) -> None:
        """Make the wish for a savepoint durable.  Refused unless the job runs."""
        now = await self._want(job, SavepointWanted(request))
        if now.status in (JobStatus.PENDING, JobStatus.CANCELING, JobStatus.FAILING):
            raise UserError(
                f"Job {job} is {now.status}; only a running job can be stopped with a savepoint.",
                code="job.not_running",
            )

    def health(self, job: str) -> list[Report]:
        """Return how each pipeline of a job gets on."""
        keeper = self.jobs.get(job)
        pipelines = keeper.pipelines.values() if keeper and not keeper.terminal else ()
        return [p.health(self._waits_of(p)) for p in pipelines]

    async def hear(self, sender: str, message: ToLeader) -> None:
        """Take in a worker's message; what comes before the records are loaded comes again."""
        if not self.loaded:
            return
        try:
            self.desk.check()
            if message.term > self.desk.term:
                raise Fenced("A worker has seen a later term.")
            match message:
                case Hello():
                    await self._hello(message)
                case BarrierAck(term, key, acked) if term == self.desk.term:
                    keeper = self._find(key)
                    if keeper:
                        await keeper.acked(acked)
                case EndReport():
                    await self._ended(message)
        except Fenced:
            self.desk.abandon()

    def _waits_of(self, keeper: PipelineKeeper) -> dict[str, str]:
        """Return why tasks of a pipeline have no worker, by task."""
        keys = [keeper.task_key(task.id) for task in keeper.state.tasks] if self.waits else []
        return {key.task: self.waits[key] for key in keys if key in self.waits}

    def _check_loaded(self) -> None:
        if not self.loaded:
            raise Unavailable("This master has just begun to lead. Ask again in a moment.")

    async def _want(self, job: str, event: object) -> Job:
        """Make a wish durable; return how the job stands then, which may be gone meanwhile."""
        self._check_loaded()
        self._check_whole(job)
        keeper = self.jobs.get(job)
        if keeper is None:
            raise UserError(f"There is no job {job}.", code="job.unknown")
        before = keeper.revision
        await keeper.handle(event)
        if keeper.revision == before:
            async with keeper.turn:
                if not keeper.gone:  # a job that is over may be buried while its client asks
                    await self.desk.confirm(keeper.key, keeper.revision)
        return keeper.state

    async def _hello(self, hello: Hello) -> None:
        replaced = self.crew.take(hello, self.desk.ports.clock.now())
        if replaced is None:
            return
        here = Place(hello.worker, hello.incarnation)
        # As of now: a later hello may start more while this one waits for the store.
        odd, missing = self.roster.differs(self.crew.seen[hello.incarnation])
        now_s, longer_s = self.desk.ports.clock.now(), self.desk.settings.progress_s
        odd += self.crew.standing(hello.incarnation, now_s, longer_s)
        for incarnation in replaced:
            await self._lost(incarnation)
        for held in odd:
            await self._held(held, here)
        for key, task in missing:
            keeper = self._find(key)
            if keeper:
                reason = "the worker no longer runs it"
                await keeper.handle(TaskFailed(task.id, task.attempt, here, reason))
        self.desk.check()
        self.desk.ports.workers.send(hello.incarnation, Welcome(self.desk.term))
        self._changed.set()

    async def _held(self, held: Held, here: Place) -> None:
        """Compare one attempt that a worker holds with what the records say."""
        if held.key.job in self.quarantined:
            return  # whoever repairs its records will want what it has staged
        keeper = self._find(held.key)
        task = _task(keeper, held.key.task)
        failure = held.failure
        if keeper and task and task.runs_as(held.attempt, here):
            stands_s = self.crew.stands_s(here.incarnation, held, self.desk.ports.clock.now())
            failure = failure or hangs(keeper.state, task, stands_s, self.desk.settings.progress_s)
        if keeper and task and task.runs_as(held.attempt, here) and failure is None:
            if task.status is TaskStatus.PLACED:
                await keeper.handle(TaskStarted(task.id, held.attempt, here))
            return
        if keeper and failure is not None:
            await keeper.handle(TaskFailed(held.key.task, held.attempt, here, failure, held.fatal))
        self.desk.check()
        job = self.jobs.get(held.key.job)
        # A later life of the same id cleans up nothing of this one.
        gone = job is None or job.state.incarnation != held.key.incarnation
        stop = StopTask(self.desk.term, held.key, held.attempt, gone)
        self.desk.ports.workers.send(here.incarnation, stop)

    async def _ended(self, report: EndReport) -> None:
        keeper = self._find(report.key)
        if keeper is None:
            return
        here = Place(report.worker, report.incarnation)
        event = SourceEnded(report.key.task, report.source, report.attempt, here)
        if await keeper.source_ended(event):
            self.desk.check()
            answer = EndConfirmed(self.desk.term, report.key, report.attempt, report.source)
            self.desk.ports.workers.send(report.incarnation, answer)

    async def _lost(self, incarnation: str) -> None:
        for keeper in list(self._keepers()):
            if any(t.place and t.place.incarnation == incarnation for t in keeper.state.tasks):
                await keeper.handle(WorkerLost(incarnation))

    async def _lost_loop(self) -> None:
        clock, settings = self.desk.ports.clock, self.desk.settings
        while True:
            await clock.sleep(settings.worker_lost_s / 4)
            placed = self.roster.placed()
            for incarnation in self.crew.overdue(clock.now(), settings.worker_lost_s, placed):
                await self._lost(incarnation)
            if self._buried:
                await self._trim()
            # Changes make things fast; looking at all of them makes it right.
            self._moved.update((job, None) for job, k in self.jobs.items() if not k.terminal)
            self._changed.set()

    async def _trim(self) -> None:
        self._buried = 0
        await trim(self.desk)

    async def _place_loop(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            moved, self._moved = self._moved, {}
            self._buried += self._bury_gone(moved)
            if self._buried >= BURIED_MAX:
                await self._trim()
            for keeper in [self.jobs[job] for job in moved if job in self.jobs]:
                if not keeper.closed and not keeper.at_rest():
                    await keeper.look()
            await self._place()

    async def _place(self) -> None:
        jobs = dict.fromkeys(k.state.job for k in self.roster.waiting.values())
        wanted = [w for job in jobs if not self.jobs[job].terminal for w in self.jobs[job].wanted()]
        placed, waits = place(wanted, self.crew.rooms(self.roster.used)) if wanted else ((), ())
        self.waits = {self._part(w.wanted).task_key(w.wanted.task): w.why for w in waits}
        for choice in placed:
            keeper = self._part(choice.wanted)
            await keeper.handle(TaskPlaced(choice.wanted.task, choice.wanted.attempt, choice.place))

    def _part(self, wanted: Wanted) -> PipelineKeeper:
        return self.jobs[wanted.job].pipelines[wanted.pipeline]

    def _bury_gone(self, moved: Iterable[str]) -> int:
        gone = [self.jobs[job] for job in moved if job in self.jobs and self.jobs[job].gone]
        for keeper in gone:
            keeper.close()
            del self.jobs[keeper.state.id]
            for part in keeper.pipelines.values():
                self.roster.forget(part)
        return len(gone)

    def _keep_job(self, job: Job, revision: int, order: int) -> None:
        key = job_key(job.id)
        self.jobs[job.id] = JobKeeper(
            self.desk, key, job, revision, order, partial(self._move, job.id), self.crew.holds
        )

    def _keep_pipeline(self, pipeline: Pipeline, revision: int) -> None:
        job = self.jobs.get(pipeline.job)
        if job is None or job.state.incarnation != pipeline.incarnation:
            reason = f"Pipeline {pipeline.number} has no job record of its incarnation."
            self.quarantined.setdefault(pipeline.job, reason)
            return
        key = pipeline_key(pipeline.job, pipeline.number)
        keeper = job.pipelines[pipeline.number] = PipelineKeeper(
            self.desk, key, pipeline, revision, lambda: job.state,
            lambda: self._moved_part(keeper), self.crew.stood_since,
        )  # fmt: skip
        self.roster.note(keeper)

    def _moved_part(self, keeper: PipelineKeeper) -> None:
        """Hear that a pipeline has changed, or that its tasks may be placed now."""
        self.roster.note(keeper)
        self._move(keeper.state.job)

    def _move(self, job: str) -> None:
        """Have the loop look at a job."""
        self._moved[job] = None
        self._changed.set()

    def _decoded(self, kind: type[R], item: Item) -> R | None:
        """Read a record.  A damaged one keeps its job aside; the others must not wait for it.

        A version we do not know is another matter: a master that meets one must not lead at all.
        """
        try:
            return decode(kind, item.value)
        except RecordUnreadable as error:
            if error.code == "record.version":
                raise
            self.quarantined.setdefault(item.key.split("/")[1], str(error))
            return None

    def _set_aside_parts(self) -> None:
        """Never run a job of which a record is missing: what is not there would count as done."""
        for job in list(self.jobs.values()):
            wanted, there = job.state.pipelines, len(job.pipelines)
            if wanted != there:
                reason = f"Of its {wanted} pipeline records {there} can be read."
                self.quarantined.setdefault(job.state.id, reason)
            if job.state.id in self.quarantined:
                del self.jobs[job.state.id]
                for part in job.pipelines.values():
                    self.roster.forget(part)

    def _check_whole(self, job: str) -> None:
        if job in self.quarantined:
            raise UserError(
                f"Job {job} is set aside: {self.quarantined[job]} Repair or remove its records.",
                code="job.damaged",
            )

    def _start(self, keeper: JobKeeper) -> None:
        """Do what the records owe.  A terminal job only waits for its cleanup."""
        for pipeline in keeper.pipelines.values():
            if not keeper.terminal:
                pipeline.spawn(pipeline.take_over)
        keeper.resume()
        self._move(keeper.state.id)

    def _keepers(self) -> Iterator[PipelineKeeper]:
        for job in self.jobs.values():
            if not job.terminal:
                yield from job.pipelines.values()

    def _find(self, key: TaskKey) -> PipelineKeeper | None:
        """Return the keeper a message is for, unless its job is over or another life of the id."""
        job = self.jobs.get(key.job)
        if job is None or job.terminal or job.state.incarnation != key.incarnation:
            return None
        return job.pipelines.get(key.pipeline)

    async def until_fenced(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something of this term; being fenced ends the term, not the process."""
        try:
            await work()
        except Fenced:
            self.desk.abandon()


def _task(keeper: PipelineKeeper | None, task: str) -> Task | None:
    return next((t for t in keeper.state.tasks if t.id == task), None) if keeper else None
