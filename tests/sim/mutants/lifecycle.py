"""Mutants of a job's life: tombstones, cleanup, deploys, savepoints, cancels, retries."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from holdfast.core import effects
from holdfast.core import job as job_core
from holdfast.core import pipeline as core
from holdfast.core.checkpoint import Checkpoints
from holdfast.core.job import TERMINAL, JobRecord, JobStatus
from holdfast.core.pipeline import ACTIVE, PipelineRecord
from holdfast.core.task import TaskStatus
from holdfast.errors import HoldfastError
from holdfast.master import leader, pipeline_keeper
from holdfast.master import pipeline_keeper as keeper
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.ports import Incarnation, MasterSettings
from holdfast.master.records import encode
from holdfast.wire.messages import DeployTask, StopTask, TaskKey
from tests.sim.engine.faults import Faults
from tests.sim.engine.lake import SimTables
from tests.sim.engine.plan import Plan, Wish
from tests.sim.engine.stages import again, bounded, pending, saved, some_leader, status, until
from tests.sim.engine.worker import SimWorker
from tests.sim.engine.world import MASTERS, WORKERS, JobSpec, World
from tests.sim.mutants.planting import crash, mutant, scene, seeds, swapped


def _leader_dies_after_the_end() -> Plan:
    """The leader dies just after the job's end."""
    return replace(bounded(), script=_kill_at_the_end)


async def _kill_at_the_end(world: World) -> None:
    await until(world, lambda w: status(w, "j") in TERMINAL)
    world.kill(await some_leader(world))


def _cleanup_wakes_up_late() -> Plan:
    """A leader is paused in its cleanup and wakes up in the next life of the job."""
    spec = JobSpec("j", rows=20)
    crashes = {("before:table.sweep", 1): "pause:16"}
    return Plan((spec,), lives=2, crashes=crashes, script=_busy_in_the_second_life, faulty_s=50.0)


async def _busy_in_the_second_life(world: World) -> None:
    begun = {"did": "submitted", "incarnation": "i2"}
    await until(world, lambda w: any(begun.items() <= e.items() for e in w.history.of("client")))
    world.faults.foreign_commit = 1.0  # so that files stay staged for a while
    await asyncio.sleep(12)
    world.faults.foreign_commit = 0.0


def _submitted_at_once() -> Plan:
    """The same id is submitted again while its tombstone stands."""
    return replace(bounded(), script=_submit_again)


async def _submit_again(world: World) -> None:
    await until(world, lambda w: status(w, "j") in TERMINAL)
    leading = world.masters[await some_leader(world)]
    process = world.process_of(leading.name)
    world.loop.spawn(process, _try_submit(world, leading.leader))


async def _try_submit(world: World, leader: Any) -> None:
    try:
        await leader.submit(*world.specs["j"].records("i2"))
    except HoldfastError:
        world.note("client", did="was refused", job="j", incarnation="i2", what="submit")


def _stops_get_lost() -> Plan:
    """Workers are not heard to be told that the job is over, until its next life has begun."""
    return replace(again(), script=_cut_from_end_to_start)


async def _cut_from_end_to_start(world: World) -> None:
    await until(world, lambda w: status(w, "j") in TERMINAL)
    for master in MASTERS:
        for worker in WORKERS:
            world.network.cuts[(master, worker)] = world.loop.time() + 9
    await until(world, lambda w: status(w, "j") is JobStatus.RUNNING)
    world.network.cuts.clear()


def _late_messages() -> Plan:
    """Messages come late and twice, and tasks fail."""
    faults = Faults(message_slow_s=4.0, message_twice=0.4, task_failure=0.03)
    return Plan((JobSpec("j", rows=20),), faults=faults)


def _leader_dies_after_a_cancel() -> Plan:
    """The leader dies just after it has accepted a cancel."""
    spec = JobSpec("j", ((("a",),), (("b",),)), rows=0)
    wishes = (Wish("j", 3.0, "cancel"),)
    return Plan((spec,), wishes=wishes, script=_kill_after_cancel, faulty_s=15.0)


async def _kill_after_cancel(world: World) -> None:
    await until(world, lambda w: any(e["did"] == "cancel" for e in w.history.of("client")))
    world.kill(await some_leader(world))


def _asleep_over_the_end() -> Plan:
    """Workers sleep with a barrier in the mail until their job is gone and lives again."""
    spec = JobSpec("j", rows=0)
    wishes = (Wish("j", 3.0, "cancel"), Wish("j", 12.0, "cancel", life=2))
    return Plan((spec,), lives=2, wishes=wishes, script=_sleep)


async def _sleep(world: World) -> None:
    await asyncio.sleep(2.5)
    await until(world, pending)
    for name in WORKERS:
        process = world.process_of(name)
        assert process
        world.note("fault", fault="pause worker", of=name)
        world.loop.pause(process, 12.0)


def _fails_for_ever() -> Plan:
    """Every attempt fails, and so does every leader a little later."""
    spec = JobSpec("j", ((("a",),),), rows=60, retry_times=3)
    return Plan((spec,), script=_fail_and_kill, settings=MasterSettings(interval_s=5.0))


async def _fail_and_kill(world: World) -> None:
    for failures in range(1, 4):
        await until(world, lambda w: any(x.tasks for x in w.workers.values()))
        world.note("fault", fault="task fails", of="W1 W2")
        await until(world, lambda w, n=failures: _failed_times(w) >= n)  # type: ignore[misc]
        world.kill(await some_leader(world))
        await asyncio.sleep(1)


def _failed_times(world: World) -> int:
    for worker in world.workers.values():
        worker.fail("p1t1", "a row could not be read")
    return world.hits.get("after:pipeline.TaskFailed", 0)


@mutant("#10675: a new leader runs a job whose record is terminal", "I11 I12 I14",
        scene(_leader_dies_after_the_end))  # fmt: skip
def terminal_job_restored() -> Iterator[None]:
    keep_job, keep_pipeline = Leader._keep_job, Leader._keep_pipeline

    def alive(self: Leader, job: JobRecord, revision: int, order: int) -> None:
        keep_job(self, replace(job, status=JobStatus.RUNNING), revision, order)

    def active(self: Leader, pipeline: PipelineRecord, revision: int) -> None:
        tasks = tuple(
            replace(t, status=TaskStatus.WAITING, attempt=t.attempt + 1, place=None)
            for t in pipeline.tasks
        )
        over = pipeline.status is not ACTIVE
        anew = replace(pipeline, status=ACTIVE, tasks=tasks, final=None) if over else pipeline
        keep_pipeline(self, anew, revision)

    with swapped(Leader, "_keep_job", alive), swapped(Leader, "_keep_pipeline", active):
        yield


@mutant("#10687: only the leader that saw the end remembers to clean up", "I66 I67 L3 L5",
        scene(_leader_dies_after_the_end))  # fmt: skip
def cleanup_in_a_local_timer() -> Iterator[None]:
    start, look = Leader._start, JobKeeper.look

    def forget(self: Leader, job: JobKeeper) -> None:
        if not job.terminal:
            start(self, job)

    async def unless_over(self: JobKeeper) -> None:
        if not self.terminal:
            await look(self)

    with swapped(Leader, "_start", forget), swapped(JobKeeper, "look", unless_over):
        yield


@mutant("#10687: cleanup goes by the job's id, whichever life it is in", "E I30 I43 I56 L3",
        scene(_cleanup_wakes_up_late))  # fmt: skip
def cleanup_of_any_life() -> Iterator[None]:
    sweep = SimTables.sweep

    async def sweep_all(self: SimTables, life: Incarnation) -> None:
        for one in ("i2", "i1"):  # a request that is out happens, whatever becomes of its sender
            self.world.loop.spawn(None, sweep(self, replace(life, incarnation=one)))

    with swapped(SimTables, "sweep", sweep_all):
        yield


@mutant("#10687: an id is accepted while its tombstone stands", "I68 I7 I9",
        scene(_submitted_at_once))  # fmt: skip
def id_accepted_too_early() -> Iterator[None]:
    submit = Leader.submit

    async def accept(self: Leader, job: JobRecord, pipelines: tuple[PipelineRecord, ...]) -> None:
        known = self.jobs.get(job.id)
        if known and known.terminal and known.state.token != job.token:
            known.close()
            await self.desk.save(known.key, encode(job), known.revision, "job.submit")
            del self.jobs[job.id]
            return
        await submit(self, job, pipelines)

    with swapped(Leader, "submit", accept):
        yield


@mutant("#10567: a worker knows a task by job and name, whichever life it is of",
        "I18 I19 I27 I28 I32 I43 I44 L3", scene(_stops_get_lost))  # fmt: skip
def deploy_key_without_the_life() -> Iterator[None]:
    def key(self: PipelineKeeper, task: str) -> TaskKey:
        return TaskKey(self.state.job, "", self.state.number, task)

    def find(self: Leader, key: TaskKey) -> PipelineKeeper | None:
        job = self.jobs.get(key.job)
        return None if job is None or job.terminal else job.pipelines.get(key.pipeline)

    with swapped(PipelineKeeper, "task_key", key), swapped(Leader, "find", find):
        yield


@mutant("#10567: a deploy of an attempt that runs starts it again", "I18", seeds(30))
def deploy_restarts_what_runs() -> Iterator[None]:
    deploy = SimWorker._deploy

    def restart(self: SimWorker, order: DeployTask) -> None:
        known = self.tasks.get(order.key)
        if known and known.attempt == order.attempt:
            known.stopped = True
            del self.tasks[order.key]
        deploy(self, order)

    with swapped(SimWorker, "_deploy", restart):
        yield


@mutant("#10567: a deploy that comes after the stop of its attempt is obeyed", "I18",
        scene(_late_messages, 60), seeds(300))  # fmt: skip
def late_deploy_accepted() -> Iterator[None]:
    deploy = SimWorker._deploy

    def obey(self: SimWorker, order: DeployTask) -> None:
        self.ended.pop(order.key, None)
        deploy(self, order)

    with swapped(SimWorker, "_deploy", obey):
        yield


@mutant("a savepoint is done when one pipeline has its part", "I59", scene(saved))
def savepoint_of_one_pipeline() -> Iterator[None]:
    saving = job_core._saving

    def hasty(job: JobRecord, pipelines: tuple[PipelineRecord, ...], over: bool) -> JobRecord:
        parts = [
            (p.number, p.checkpoints.latest.blob)
            for p in pipelines
            if p.checkpoints.latest and p.savepoint and p.savepoint.number
        ]
        if parts and not job.saved:
            return replace(job, saved=tuple(parts))
        return saving(job, pipelines, over)

    with swapped(job_core, "_saving", hasty):
        yield


@mutant("checkpoints go on after the savepoint that ends the job", "I61 I62 I63", scene(saved),
        crash("after:job.JobSavepointRequested", stage=saved), seeds(400))  # fmt: skip
def checkpoints_after_the_savepoint() -> Iterator[None]:
    wanted = core.wanted

    def regardless(pipeline: PipelineRecord, kind: Any) -> bool:
        return wanted(replace(pipeline, savepoint=None), kind) or wanted(pipeline, kind)

    with (
        swapped(pipeline_keeper, "wanted", regardless),
        swapped(core, "wanted", regardless),
        swapped(effects, "wanted", regardless),
    ):
        yield


@mutant("a cancel is not written down, and so forgotten by a new leader", "I10 L3 L4",
        scene(_leader_dies_after_a_cancel))  # fmt: skip
def cancel_forgotten() -> Iterator[None]:
    def without(record: Any) -> bytes:
        if isinstance(record, JobRecord) and record.status is JobStatus.CANCELING:
            record = replace(record, status=JobStatus.RUNNING)
        return encode(record)

    with swapped(keeper, "encode", without):
        yield


@mutant("every leader begins to count retries anew", "L9", scene(_fails_for_ever))
def retries_begin_anew() -> Iterator[None]:
    keep = Leader._keep_pipeline

    def fresh(self: Leader, pipeline: PipelineRecord, revision: int) -> None:
        keep(self, replace(pipeline, retries=0), revision)

    with swapped(Leader, "_keep_pipeline", fresh):
        yield


@mutant("a new leader begins with no checkpoints", "I16 I26 I31 I44", seeds(100))
def checkpoints_forgotten_by_a_new_leader() -> Iterator[None]:
    keep = Leader._keep_pipeline

    def fresh(self: Leader, pipeline: PipelineRecord, revision: int) -> None:
        keep(self, replace(pipeline, checkpoints=Checkpoints()), revision)

    with swapped(Leader, "_keep_pipeline", fresh):
        yield


@mutant(
    "what a task staged after its job was cleaned up stays if the id lives again",
    "I67 L11",
    scene(_asleep_over_the_end),
)
def files_of_a_life_that_is_gone() -> Iterator[None]:
    def stop(term: int, key: TaskKey, attempt: int, gone: bool) -> StopTask:
        return StopTask(term, key, attempt, gone=False)

    with swapped(leader, "StopTask", stop):
        yield
