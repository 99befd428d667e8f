"""Mutants of save modes: who removes what is in a table, when, and how often."""

import asyncio
from collections.abc import Iterator

from holdfast.core.task import TaskRecord
from holdfast.master import checkpoint_content
from tests.sim.engine.lake import SimTable
from tests.sim.engine.plan import Plan, Wish
from tests.sim.engine.worker import Running, SimWorker
from tests.sim.engine.world import JobSpec, World
from tests.sim.mutants.planting import mutant, scene, swapped
from tests.sim.scenarios import moments

LONG = JobSpec("j", ((("a",),),), rows=24, empties=True)
PAIR = JobSpec("j", ((("a",),), (("b",),)), rows=9, empties=True)


def _a_thread_hangs_before_its_tables() -> Plan:
    """A task hangs while it looks at its tables, and goes on after the next one's commit."""
    return Plan((LONG,), script=_hang_and_go_on)


async def _hang_and_go_on(world: World) -> None:
    gate = world.slow_to_open["p1t1", 1] = asyncio.Event()
    await world.saw(moments.pipeline(moments.committed(1)))
    gate.set()


def _saved_and_resumed() -> Plan:
    """A job is saved, and its next life goes on from there."""
    return Plan((LONG,), lives=2, wishes=(Wish("j", 4.0, "savepoint"),))


def _two_pipelines() -> Plan:
    """Two pipelines write one table."""
    return Plan((PAIR,))


@mutant("a worker removes what is in its tables", "I79", scene(_a_thread_hangs_before_its_tables))
def prepare_without_the_fence() -> Iterator[None]:
    """As it was before: no check inside the worker can mend it."""
    look = SimWorker.open

    def empty(self: SimWorker, running: Running) -> tuple[str, ...]:
        for sink in look(self, running):
            self.world.tables.clear(sink)
        return ()

    with swapped(SimWorker, "open", empty):
        yield


@mutant("a savepoint forgets which tables are known", "I79", scene(_saved_and_resumed))
def save_modes_again_after_a_restore() -> Iterator[None]:
    """Rows of earlier lives go."""
    right = checkpoint_content.CheckpointContent.start

    def forget(
        self: checkpoint_content.CheckpointContent, task: TaskRecord
    ) -> checkpoint_content.TaskStart:
        start = right(self, task)
        return checkpoint_content.TaskStart(start.positions, start.counts, ())

    with swapped(checkpoint_content.CheckpointContent, "start", forget):
        yield


@mutant("a table forgets which life has emptied it", "I79", scene(_two_pipelines))
def save_modes_once_for_each_pipeline() -> Iterator[None]:
    """The second pipeline's first commit removes what the first one's has shown."""
    right = SimTable.empty_for

    def forget(self: SimTable, files: tuple[str, ...]) -> list[str]:
        self.opened.clear()
        return right(self, files)

    with swapped(SimTable, "empty_for", forget):
        yield
