"""Mutants of saved states: what a life leaves, and how the next one goes on from it."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from holdfast.core import job as job_core
from holdfast.core import pipeline as pipeline_core
from holdfast.core import saved_state as saved_core
from holdfast.core.job import JobRecord, JobStatus, owed
from holdfast.core.pipeline import AbandonRequested, PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.master import accept, commit_loop, job_keeper, pipeline_keeper, saved_states
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.records import saved_key
from holdfast.master.saved_states import Heir, Vault
from holdfast.store.contract import Delete, Put
from tests.sim.engine.client import resume
from tests.sim.engine.plan import Plan, Refusal, Wish
from tests.sim.engine.stages import going_on, some_leader, until
from tests.sim.engine.world import JobSpec, World
from tests.sim.mutants.planting import crash, mutant, scene, seeds, swapped


def _restored_badly() -> Plan:
    """A first try to go on fails at once; the job goes on from its savepoint all the same."""
    spec = JobSpec("j", rows=20)
    wishes = (Wish("j", 3.0, "savepoint"), Wish("j", 0.2, "cancel", 2))
    return Plan((spec,), lives=3, wishes=wishes)


def _mended() -> Plan:
    """A table refuses a commit, is mended, and the next life goes on."""
    spec = JobSpec("j", ((("a",),),), rows=12)
    return Plan((spec,), lives=2, refusals=(Refusal("t", 1.0, 4.0),), rest_s=4.0)


def _used_twice() -> Plan:
    """Somebody goes on from a savepoint that a life has gone on from before."""
    spec = JobSpec("j", rows=20)
    wishes = (Wish("j", 3.0, "savepoint"),)
    return Plan((spec,), lives=2, wishes=wishes, script=_use_again)


async def _use_again(world: World) -> None:
    def over(world: World) -> bool:
        events = world.history.of("write")
        done = [e for e in events if e["key"] == "job/j" and e["status"] == JobStatus.FINISHED]
        return bool(done)

    await until(world, over)
    leading = world.masters[await some_leader(world)]
    assert leading.leader
    found = [s for s in leading.leader.vault.of("j") if s.incarnation == "i1"]
    if found:
        process = world.process_of(leading.name)
        world.loop.spawn(process, _try(world, leading.leader, found[0]))


async def _try(world: World, leader: Any, saved: Saved) -> None:
    try:
        await resume(world.specs["j"], "i3", leader, saved)
    except Exception as error:  # noqa: BLE001  a refusal is what should happen
        world.note("client", did=f"was refused: {error}", job="j", incarnation="i3", what="submit")


@mutant("a restore that fails has used its savepoint up", "I43 I59 I67 I80 I81",
        scene(_restored_badly), seeds(100))  # fmt: skip
def savepoint_consumed() -> Iterator[None]:
    begins = Vault.begins

    def consume(self: Vault, job: JobRecord, bases: Any) -> list[Put | Delete]:
        names = list(bases)
        return [*begins(self, job, names), *(Delete(saved_key(name)) for name in names)]

    with swapped(Vault, "begins", consume):
        yield


@mutant("a former life's commit is made under a new identifier", "I44 I47 I48 I49 I51 I81",
        crash("after:table.commit", stage=going_on), crash("after:table.commit", 2, stage=going_on),
        crash("before:pipeline.Committed", stage=_mended), scene(_mended),
        seeds(300))  # fmt: skip
def former_commit_under_a_new_name() -> Iterator[None]:
    commit = commit_loop._commit_former

    async def anew(keeper: Any, former: Any, done: Any) -> Any:
        name = replace(former, incarnation=keeper.state.incarnation)
        original = commit_loop._former_content

        async def content(k: Any, _: Any, d: Any) -> Any:
            return await original(k, former, d)

        with swapped(commit_loop, "_former_content", content):
            return await commit(keeper, name, done)

    with swapped(commit_loop, "_commit_former", anew):
        yield


@mutant("an id is handed over with no regard for the old life's cleanup", "E I65 I66 I67 I68 L3 L5",
        scene(_restored_badly), seeds(100))  # fmt: skip
def hand_over_without_a_grave() -> Iterator[None]:
    def nowhere(job: str, incarnation: str) -> str:
        return f"nowhere/{job}/{incarnation}"

    with swapped(accept, "grave_key", nowhere):
        yield


@mutant("nobody looks whether later lives have shown more", "I9 I44 I81", scene(_used_twice))
def line_not_guarded() -> Iterator[None]:
    def blind(self: Vault, saved: Saved) -> list[Heir]:
        return []

    def trusting(vault: Vault, saved: Saved, *, write_again: bool) -> None:
        return

    with swapped(Vault, "past", blind), swapped(accept, "check_line", trusting):
        yield


@mutant("what was staged for unfinished commits is swept with the life", "E I43 I56 I67 I81 L3",
        scene(_mended), seeds(100))  # fmt: skip
def unfinished_swept() -> Iterator[None]:
    def always(self: Vault, job: str, incarnation: str) -> bool:
        return True

    with swapped(Vault, "may_sweep", always):
        yield


@mutant("tasks start before the former life's commits are made", "I16 I51 I81", scene(_mended),
        seeds(100))  # fmt: skip
def former_commits_forgotten() -> Iterator[None]:
    leave = saved_core.leave

    def without(
        job: JobRecord, pipelines: tuple[PipelineRecord, ...], made_s: float
    ) -> Saved | None:
        found = leave(job, pipelines, made_s)
        if found is None:
            return None
        parts = tuple(replace(p, waiting=(), unheard=None) for p in found.parts)
        return replace(found, parts=parts)

    with swapped(saved_states, "leave", without):
        yield


@mutant("a life leaves its state in a write of its own, after its end", "I80",
        crash("after:job.PipelinesChanged", 4, stage=going_on), scene(going_on))  # fmt: skip
def state_written_after_the_end() -> Iterator[None]:
    def later(self: JobKeeper, new: JobRecord) -> list[Put | Delete]:
        return []

    with swapped(JobKeeper, "beside", later):
        yield


def _ended_by_force() -> Plan:
    """A commit hangs, somebody ends the job by force, and the next life goes on."""
    spec = JobSpec("j", rows=20)
    wishes = (Wish("j", 6.0, "force"),)
    return Plan((spec,), lives=2, wishes=wishes, script=_hang, faulty_s=5.0, rest_s=40.0)


async def _hang(world: World) -> None:
    world.tables.holds = lambda order: order.number == 2 and ".i1." in order.user
    await asyncio.sleep(35)
    world.tables.holds = None
    for held in world.tables.held:
        held.gate.set()


@mutant("a cancel by force waits for commits", "I82", scene(_ended_by_force))
def force_is_polite() -> Iterator[None]:
    def polite(job: JobRecord, pipelines: tuple[PipelineRecord, ...]) -> tuple[Any, ...]:
        return owed(replace(job, forced=False), pipelines)

    with swapped(job_keeper, "owed", polite):
        yield


@mutant("what a cancel by force leaves undone is not listed", "I82", scene(_ended_by_force))
def abandoned_in_silence() -> Iterator[None]:
    with swapped(job_core, "abandoned", lambda pipelines: ()):
        yield


@mutant("a cancel by force forgets what was complete", "I51 I59 I81 I82", scene(_ended_by_force))
def abandoned_for_ever() -> Iterator[None]:
    def forgetful(old: PipelineRecord, event: object) -> PipelineRecord:
        new = pipeline_core.step(old, event)
        if not isinstance(event, AbandonRequested):
            return new
        through = max((c.number for c in new.commits.waiting), default=new.commits.through)
        return replace(new, commits=replace(new.commits, waiting=(), through=through,
                                            listened=through))  # fmt: skip

    with swapped(pipeline_keeper, "step", forgetful):
        yield
