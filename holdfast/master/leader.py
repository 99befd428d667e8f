"""Lead for one term: load every record, keep them all, listen to workers, place tasks.

Taking over is nothing special: the records are loaded, and each keeper does what its record owes.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any

from holdfast.core.completion import SourceEnded
from holdfast.core.job import JobCancelRequested, JobRecord, JobSavepointRequested, JobStatus
from holdfast.core.machine import Event
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.core.task import (
    TaskFailed,
    TaskRecord,
    TaskStarted,
    TaskStatus,
    WorkerId,
    WorkerLost,
)
from holdfast.errors import Fenced, Unavailable, UserError
from holdfast.master.accept import JobStart, accept
from holdfast.master.drains import Drains, place_tasks
from holdfast.master.health import HealthReport, Ill, newest
from holdfast.master.job_keeper import JobKeeper, load_trails
from holdfast.master.leader_store import LeaderStore
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.records import (
    GRAVE,
    R,
    RecordUnreadable,
    decode,
    grave_key,
    job_key,
    pipeline_key,
)
from holdfast.master.retention import trim
from holdfast.master.saved_states import Vault
from holdfast.master.wait import unhurried
from holdfast.master.worker_registry import Roster, WorkerRegistry, hangs
from holdfast.store.contract import Item
from holdfast.wire.messages import (
    BarrierAck,
    Heartbeat,
    HeartbeatAck,
    SourceEndAck,
    SourceEndReport,
    StopTask,
    TaskKey,
    TaskReport,
    ToLeader,
)

HEARD_AT_ONCE_MAX = 256
"""So many messages may wait for the store at a time.  Thousands may come at once, and each of them
is said again."""

BURIED_MAX = 200
"""So many jobs may be buried before the history is read, to forget the oldest."""


class Leader:
    """Everything one master does while it leads in one term, on all records and their keepers."""

    def __init__(self, desk: LeaderStore) -> None:
        self.desk = desk
        self.jobs: dict[str, JobKeeper] = {}
        self.graves: dict[tuple[str, str], JobKeeper] = {}
        self.vault = Vault(desk, self._lives, self._finishes)
        self.crew = WorkerRegistry(desk.ports.clock.now())
        self.roster = Roster()
        self.drains = Drains(desk)
        self.quarantined: dict[str, str] = {}
        self.loaded = False
        self._changed = asyncio.Event()
        self._moved: dict[str, None] = {}
        self._buried = 0
        self.waits: dict[TaskKey, str] = {}
        self._beside: list[asyncio.Task[None]] = []
        self._hearing = 0

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
        for grave in list(self.graves.values()):
            grave.resume()
        tell_time = partial(self.desk.tell_time, lambda: any(self._keepers()))
        for work in (self._place_loop, self._lost_loop, tell_time, self.vault.tidy):
            task = asyncio.ensure_future(self.until_fenced(work))
            task.add_done_callback(self.desk.watch)
            self._beside.append(task)

    def close(self) -> None:
        """Stop everything of this term."""
        for task in self._beside:
            task.cancel()
        for keeper in (*self.jobs.values(), *self.graves.values()):
            keeper.close()

    async def submit(
        self, job: JobRecord, pipelines: tuple[PipelineRecord, ...], start: JobStart | None = None
    ) -> None:
        """Accept a job: its record and its pipelines' in one transaction.

        The same submit again (same token) is answered yes; any other job of that id is refused
        for as long as the id is in use, its tombstone included.  An incarnation that starts from a
        saved state need not wait for the tombstone.
        """
        self._check_loaded()
        self._check_whole(job.id)
        known = self.jobs.get(job.id)
        if known and known.state.token == job.token:
            if not await known.confirm():
                raise Unavailable(f"Job {job.id} has just been cleaned up. Ask again.")
            return
        if known and not (start and known.terminal):
            raise UserError(known.in_use(), code="job.exists")
        await accept(self, job, pipelines, start)

    def took(
        self,
        job: JobRecord,
        pipelines: tuple[PipelineRecord, ...],
        revision: int,
        former: JobKeeper | None,
    ) -> None:
        """Keep an incarnation that has just become durable; the former one has a grave."""
        if former:
            for part in former.pipelines.values():
                self.roster.forget(part)
            self._bury(former.state, revision)
        self._keep_job(job, revision, revision)
        for pipeline in pipelines:
            self._keep_pipeline(pipeline, revision)
        self._start(self.jobs[job.id])

    def has(self, job: str, token: str) -> bool:
        """Say whether a submit was taken before."""
        return job in self.jobs and self.jobs[job].state.token == token

    async def remove_saved(self, saved: Saved) -> None:
        """Have a saved state go."""
        self._check_loaded()
        if not await self.vault.remove(saved):
            raise UserError(
                f"Saved state {saved.life} of job {saved.job} is in use: a job that started from it"
                " is finishing its commits. Try again when it runs.",
                code="saved.in_use",
            )

    async def cancel(self, job: str, *, force: bool = False) -> None:
        """Make a cancel durable.  Answered yes for a job that is over already."""
        await self._want(job, JobCancelRequested(force))

    async def savepoint(self, job: str, request: str) -> None:
        """Make the wish for a savepoint durable.  Refused unless the job runs."""
        now = await self._want(job, JobSavepointRequested(request))
        if now.status in (JobStatus.PENDING, JobStatus.CANCELING, JobStatus.FAILING):
            raise UserError(
                f"Job {job} is {now.status}; only a running job can be stopped with a savepoint.",
                code="job.not_running",
            )

    async def drain(self, worker: str, *, drained: bool) -> None:
        """Have a worker be free of tasks, and get none; or no more.  By its name, until undone."""
        self._check_loaded()
        await self.drains.wish(self, worker, drained=drained)
        self._changed.set()

    def health(self, job: str) -> list[HealthReport]:
        """Return the health of each pipeline of a job."""
        keeper = self.jobs.get(job)
        pipelines = keeper.pipelines.values() if keeper and not keeper.terminal else ()
        hellos = {i: s.hello for i, s in self.crew.seen.items() if s.hello.trouble}
        ill = {i: Ill(h.worker, h.silent_s, h.trouble) for i, h in hellos.items()}
        return [p.health(self._waits_of(p)).with_ill(p.state, ill) for p in pipelines]

    def has_time(self, sender: str) -> bool:
        """Say whether a message can be taken in now; if not, it comes again.

        However busy we are, a worker that sends something is not taken for dead.
        """
        if self._hearing < HEARD_AT_ONCE_MAX:
            return True
        self.crew.spoke(sender, self.desk.ports.clock.now())
        return False

    async def hear(self, sender: str, message: ToLeader) -> None:
        """Take in a worker's message; what comes before the records are loaded comes again."""
        if not self.loaded:
            return
        self._hearing += 1
        try:
            self.desk.check()
            if message.term > self.desk.term:
                raise Fenced("A worker has seen a later term.")
            match message:
                case Heartbeat():
                    await self._hello(message)
                case BarrierAck(term, key, acked) if term == self.desk.term:
                    keeper = self.find(key)
                    if keeper:
                        await keeper.acked(acked)
                case SourceEndReport():
                    await self._ended(message)
        except Fenced:
            self.desk.abandon()
        finally:
            self._hearing -= 1

    def _waits_of(self, keeper: PipelineKeeper) -> dict[str, str]:
        """Return why tasks of a pipeline have no worker, by task."""
        keys = [keeper.task_key(task.id) for task in keeper.state.tasks] if self.waits else []
        return {key.task: self.waits[key] for key in keys if key in self.waits}

    def _check_loaded(self) -> None:
        if not self.loaded:
            raise Unavailable("This master has just begun to lead. Ask again in a moment.")

    async def _want(self, job: str, event: Event) -> JobRecord:
        """Make a wish durable; return the job as it is then, or None if it is gone meanwhile."""
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

    async def _hello(self, hello: Heartbeat) -> None:
        troubles = self.crew.troubles()
        replaced = self.crew.take(hello, self.desk.ports.clock.now())
        if replaced is None:
            return
        here = WorkerId(hello.worker, hello.incarnation)
        # As of now: a later hello may start more while this one waits for the store.
        odd, missing = self.roster.differs(self.crew.seen[hello.incarnation])
        now_s, longer_s = self.desk.ports.clock.now(), self.desk.settings.progress_s
        odd += self.crew.standing(hello.incarnation, now_s, longer_s)
        for incarnation in replaced:
            await self._lost(incarnation, troubles.get(incarnation, ""))
        for held in odd:
            await self._held(held, here)
        for key, task in missing:
            keeper = self.find(key)
            if keeper:
                reason = "the worker no longer runs it"
                await keeper.handle(TaskFailed(task.id, task.attempt, here, reason))
        self.desk.check()
        leave = hello.leaving and self.drains.may_leave(self, hello.incarnation)
        self.desk.ports.workers.send(hello.incarnation, HeartbeatAck(self.desk.term, leave))
        self._changed.set()

    async def _held(self, held: TaskReport, here: WorkerId) -> None:
        """Compare one attempt that a worker holds with what the records say."""
        if held.key.job in self.quarantined:
            return  # its records may be repaired, and then what it has staged is needed
        keeper = self.find(held.key)
        task = _task(keeper, held.key.task)
        failure = held.failure
        if keeper and task and task.runs_as(held.attempt, here):
            stands_s = self.crew.stands_s(here.incarnation, held, self.desk.ports.clock.now())
            failure = failure or hangs(keeper.state, task, stands_s, self.desk.settings.progress_s)
        if keeper and task and task.runs_as(held.attempt, here) and failure is None:
            if task.status is TaskStatus.PLACED:
                now = (self.desk.ports.clock.date(), self.desk.time.now())
                await keeper.handle(TaskStarted(task.id, held.attempt, here, *now))
            return
        if keeper and failure is not None:
            await keeper.handle(TaskFailed(held.key.task, held.attempt, here, failure, held.fatal))
        self.desk.check()
        # What an incarnation has staged goes with it, unless it is kept to be committed later.
        life = (held.key.job, held.key.incarnation)
        gone = life[1] not in self._lives(life[0]) and self.vault.may_sweep(*life)
        stop = StopTask(self.desk.term, held.key, held.attempt, gone)
        self.desk.ports.workers.send(here.incarnation, stop)

    async def _ended(self, report: SourceEndReport) -> None:
        keeper = self.find(report.key)
        if keeper is None:
            return
        here = WorkerId(report.worker, report.incarnation)
        event = SourceEnded(report.key.task, report.source, report.attempt, here)
        if await keeper.source_ended(event):
            self.desk.check()
            answer = SourceEndAck(self.desk.term, report.key, report.attempt, report.source)
            self.desk.ports.workers.send(report.incarnation, answer)

    async def _lost(self, incarnation: str, why: str) -> None:
        for keeper in list(self._keepers()):
            places = [p for t in keeper.state.tasks for p in (t.place, t.to) if p]
            if any(p.incarnation == incarnation for p in places):
                await keeper.handle(WorkerLost(incarnation, why))

    async def _lost_loop(self) -> None:
        clock, settings = self.desk.ports.clock, self.desk.settings
        while True:
            await clock.sleep(settings.worker_lost_s / 4)
            placed, troubles = self.roster.placed(), self.crew.troubles()
            for incarnation in self.crew.overdue(clock.now(), settings.worker_lost_s, placed):
                await self._lost(incarnation, troubles.get(incarnation, ""))
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
            if await place_tasks(self):
                self._changed.set()

    def _bury_gone(self, moved: Iterable[str]) -> int:
        gone = [self.jobs[job] for job in moved if job in self.jobs and self.jobs[job].gone]
        for keeper in gone:
            keeper.close()
            del self.jobs[keeper.state.id]
            for part in keeper.pipelines.values():
                self.roster.forget(part)
        return len(gone)

    def _start(self, keeper: JobKeeper) -> None:
        """Do what the records owe.  A terminal job only waits for its cleanup."""
        for pipeline in keeper.pipelines.values():
            if not keeper.terminal:
                pipeline.spawn(pipeline.take_over)
        keeper.resume()
        self._move(keeper.state.id)

    async def until_fenced(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run something of this term; being fenced ends the term, not the process."""
        try:
            await work()
        except Fenced:
            self.desk.abandon()

    async def _load(self) -> None:
        await self.desk.read_time()
        await self.desk.count_term()
        await self.drains.load()
        jobs = await self.desk.read_range("job/")
        pipelines = await self.desk.read_range("pipeline/")
        async for item in unhurried(jobs):
            job = self._decoded(JobRecord, item)
            if job:
                self._keep_job(job, item.revision, item.created)
        async for item in unhurried(pipelines):
            pipeline = self._decoded(PipelineRecord, item)
            if pipeline:
                self.desk.time.at_least(newest(pipeline))
                self._keep_pipeline(pipeline, item.revision)
        for item in await self.desk.read_range(GRAVE):
            grave = self._decoded(JobRecord, item)
            if grave:
                self._bury(grave, item.revision)
        await self.vault.load()
        self._set_aside_parts()
        await load_trails(self.desk, self.jobs.values())

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
                f"Job {job} is unreadable: {self.quarantined[job]} Repair or remove its records.",
                code="job.damaged",
            )

    def _keep_job(self, job: JobRecord, revision: int, order: int) -> None:
        key, moved = job_key(job.id), partial(self._move, job.id)
        self.jobs[job.id] = JobKeeper(
            self.desk, key, job, revision, order, moved, self.crew.holds, self.vault
        )

    def _keep_pipeline(self, pipeline: PipelineRecord, revision: int) -> None:
        job = self.jobs.get(pipeline.job)
        if job is None or job.state.incarnation != pipeline.incarnation:
            reason = f"Pipeline {pipeline.number} has no job record of its incarnation."
            self.quarantined.setdefault(pipeline.job, reason)
            return
        key = pipeline_key(pipeline.job, pipeline.number)
        keeper = job.pipelines[pipeline.number] = PipelineKeeper(
            self.desk, key, pipeline, revision, job,
            lambda: self._moved_part(keeper), self.crew.stood_since,
        )  # fmt: skip
        self.roster.note(keeper)

    def _bury(self, job: JobRecord, revision: int) -> None:
        """Keep an ended incarnation whose id is in use again, until it is cleaned up."""
        life = (job.id, job.incarnation)

        def gone() -> None:
            if grave.gone:
                del self.graves[life]
                self._buried += 1

        grave = self.graves[life] = JobKeeper(
            self.desk, grave_key(*life), job, revision, revision, gone, self.crew.holds, self.vault
        )
        if self.loaded:
            grave.resume()

    def _lives(self, job: str) -> set[str]:
        """Return the incarnations of a job that have records."""
        lives = {inc for one, inc in self.graves if one == job}
        return lives | ({self.jobs[job].state.incarnation} if job in self.jobs else set())

    def _finishes(self, saved: Saved) -> bool:
        """Say whether a running incarnation has yet to finish what a state has left."""
        life = (saved.job, saved.incarnation)
        formers = (f for k in self._keepers() if k.state.owes_former for f in k.state.formers)
        return any((f.job, f.incarnation) == life for f in formers if not f.settled)

    def _keepers(self) -> Iterator[PipelineKeeper]:
        for job in self.jobs.values():
            if not job.terminal:
                yield from job.pipelines.values()

    def find(self, key: TaskKey) -> PipelineKeeper | None:
        """Return the keeper a message is for, unless its job is over or another incarnation."""
        job = self.jobs.get(key.job)
        if job is None or job.terminal or job.state.incarnation != key.incarnation:
            return None
        return job.pipelines.get(key.pipeline)

    def _moved_part(self, keeper: PipelineKeeper) -> None:
        """Note that a pipeline has changed, or that its tasks may be placed now."""
        self.roster.note(keeper)
        self._move(keeper.state.job)

    def _move(self, job: str) -> None:
        """Have the loop look at a job."""
        self._moved[job] = None
        self._changed.set()


def _task(keeper: PipelineKeeper | None, task: str) -> TaskRecord | None:
    return next((t for t in keeper.state.tasks if t.id == task), None) if keeper else None
