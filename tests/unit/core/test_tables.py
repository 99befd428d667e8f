"""The tables of all machines are sane: this is what the diagrams and the simulation rely on."""

from pathlib import Path

import pytest

from holdfast.core.completion import COMPLETION
from holdfast.core.election import ELECTION, STANDBY
from holdfast.core.job import TERMINAL
from holdfast.core.machine import TransitionTable
from holdfast.core.pipeline import OVER
from holdfast.core.task import TaskStatus
from tools.machines import MACHINES, finals, initial, page, statuses

DOCS = Path(__file__).parent.parent.parent.parent / "docs"
ids = [m.name for m in MACHINES]


@pytest.mark.parametrize("machine", MACHINES, ids=ids)
def test_no_row_stands_twice(machine: TransitionTable) -> None:
    assert len(set(machine.rows)) == len(machine.rows)


@pytest.mark.parametrize("machine", MACHINES, ids=ids)
def test_every_status_of_the_enum_is_in_the_table(machine: TransitionTable) -> None:
    assert set(statuses(machine)) == set(type(initial(machine)))


@pytest.mark.parametrize("machine", MACHINES, ids=ids)
def test_every_status_can_be_reached(machine: TransitionTable) -> None:
    reached = {initial(machine)}
    while True:
        more = {new for old, _, new in machine.rows if old in reached} | reached
        if more == reached:
            break
        reached = more
    assert reached == set(statuses(machine))


def test_no_row_leaves_a_final_status() -> None:
    ends = {m.name: set(finals(m)) for m in MACHINES}
    assert ends == {
        "election": set(),
        "job": set(TERMINAL),
        "pipeline": set(OVER),
        "task": {TaskStatus.DONE},
        "checkpoint": set(),
        "completion": set(),
        "commit": set(),
    }


def test_a_move_without_a_row_raises() -> None:
    with pytest.raises(AssertionError, match="election: 7 must not take standby to standby"):
        ELECTION.check(STANDBY, 7, STANDBY)


def test_a_row_that_was_used_is_noted() -> None:
    machine = TransitionTable("copy", COMPLETION.rows)
    old, event, new = machine.rows[0]
    machine.check(old, event.__new__(event), new)
    assert machine.taken == {machine.rows[0]}


def test_the_diagrams_are_up_to_date() -> None:
    assert (DOCS / "machines.md").read_text() == page()
