"""Where what a checkpoint holds goes, when the job file has other pipelines, tasks and names."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.gather import Counts, OpenedTable, WrittenRows
from holdfast.errors import SourceLocation
from holdfast.master.checkpoint_content import VERSION, CheckpointContent
from holdfast.master.restored_checkpoints import Move, add, transplant
from holdfast.model.job import JobPlan, Mode, Role, Stage
from holdfast.model.tree import Block
from holdfast.plan.graph import split

NOWHERE = SourceLocation("job.conf", 1, 1)


def job(*wired: tuple[str, str]) -> JobPlan:
    """A job of sources and sinks, each pair of which is wired."""
    sources = list(dict.fromkeys(source for source, _ in wired))
    sinks = list(dict.fromkeys(sink for _, sink in wired))
    stages = [_stage(s, Role.SOURCE, ()) for s in sources]
    stages += [_stage(t, Role.SINK, tuple(s for s, k in wired if k == t)) for t in sinks]
    pipelines = split(stages, ())
    return JobPlan(
        "a job", Mode.STREAMING, tuple(stages), pipelines, 1, None, None, 0, 0, None, None, (), (),
        "job.conf",
    )  # fmt: skip


def _stage(name: str, role: Role, inputs: tuple[str, ...]) -> Stage:
    return Stage(name, role, "P", Block((), NOWHERE), inputs, None, 1, NOWHERE)


def saved(before: JobPlan) -> list[CheckpointContent]:
    """What each pipeline's checkpoint holds: a position, rows and an event time of each source."""
    return [
        CheckpointContent(
            VERSION, "j", "1", part.id, 9,
            {s: f"at {s}" for s in part.stages if before.stage(s).role is Role.SOURCE},
            (),
            100 * part.id,
            {
                task.id: Counts(
                    10,
                    tuple(
                        WrittenRows(s, "t", 5, 50)
                        for s in task.stages
                        if before.stage(s).role is Role.SINK
                    ),
                    tuple((s, 7) for s in task.stages if before.stage(s).role is Role.SOURCE),
                )
                for task in part.tasks
            },
            tuple(
                OpenedTable(s, "t", f"place of {s}", "1")
                for s in part.stages
                if before.stage(s).role is Role.SINK
            ),
        )
        for part in before.pipelines
    ]  # fmt: skip


def test_positions_counters_and_event_times_go_where_their_stages_are() -> None:
    before = job(("a", "x"), ("b", "y"))
    after = job(("new", "y2"), ("b2", "y2"), ("a2", "x2"), ("b2", "z"))
    move = Move(before, after, {"a": "a2", "b": "b2", "x": "x2", "y": "y2"})
    found = transplant(saved(before), move, "j", "2")
    first, second = found[1], found[2]
    assert (first.positions, second.positions) == ({"b2": "at b"}, {"a2": "at a"})
    assert (first.number, first.incarnation, first.staged) == (0, "2", ())
    assert (first.rows("y2"), second.rows("x2"), first.rows("z")) == ({"t": 5}, {"t": 5}, {})
    # A source that came without a watermark may bring older rows.
    assert (first.watermark, second.watermark) == (None, 100)
    tasks = {t.id: t.stages for p in after.pipelines for t in p.tasks}
    ((task, counts),) = first.counts.items()
    assert "b2" in tasks[task] and (counts.read, counts.latest) == (10, (("b2", 7),))


def test_two_pipelines_that_become_one_add_up() -> None:
    before, after = job(("a", "x"), ("b", "y")), job(("b", "x"), ("a", "x"), ("a", "y"))
    move = Move(before, after, {one: one for one in "abxy"})
    (found,) = transplant(saved(before), move, "j", "2").values()
    assert found.positions == {"a": "at a", "b": "at b"} and found.watermark == 100
    assert (found.rows("x"), found.rows("y")) == ({"t": 5}, {"t": 5})
    assert sum(c.read for c in found.counts.values()) == 20
    assert move.feeders(after.pipelines[0]) == [1, 2]
    assert move.watermark(after.pipelines[0], {1: 100, 2: None}) is None


def test_what_is_dropped_goes_nowhere() -> None:
    before, after = job(("a", "x"), ("b", "x")), job(("b", "x"))
    (found,) = transplant(
        saved(before), Move(before, after, {"b": "b", "x": "x"}), "j", "2"
    ).values()
    assert found.positions == {"b": "at b"}
    # Rows of the sink count, whoever brought them; those read by a source that is gone do not.
    assert found.rows("x") == {"t": 10} and [c.read for c in found.counts.values()] == [10]


wires = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1, unique=True)


@given(wires, wires, st.data())
def test_nothing_that_goes_on_is_lost_or_counted_twice(
    old: list[tuple[str, str]], new: list[tuple[str, str]], data: st.DataObject
) -> None:
    before, after = job(*old), job(*new)
    there = [s.id for s in before.stages if s.id in {n.id for n in after.stages}]
    kept = data.draw(st.lists(st.sampled_from(there), unique=True)) if there else []
    contents = saved(before)
    found = transplant(contents, Move(before, after, {s: s for s in kept}), "j", "2")
    positions = [p for c in found.values() for p in c.positions]
    sources = [s for s in kept if before.stage(s).role is Role.SOURCE]
    assert sorted(positions) == sorted(sources)
    parts = [part for part in after.pipelines if set(part.stages) & set(kept)]
    assert set(found) == {part.id for part in after.pipelines}, "each knows what tables are known"
    sinks = [s.id for s in before.stages if s.role is Role.SINK]
    opened = {OpenedTable(s if s in kept else "", "t", f"place of {s}", "1") for s in sinks}
    assert all(set(c.opened or ()) == opened for c in found.values())
    for part in parts:
        assert set(found[part.id].positions) <= set(part.stages)
        assert set(found[part.id].counts) <= {t.id for t in part.tasks}
    for sink in (s for s in kept if before.stage(s).role is Role.SINK):
        was = sum(c.rows(sink).get("t", 0) for c in contents)
        assert sum(c.rows(sink).get("t", 0) for c in found.values()) == was
    latest = [s for c in found.values() for n in c.counts.values() for s, _ in n.latest]
    assert sorted(latest) == sorted(sources)
    tasks = [t for p in before.pipelines for t in p.tasks]
    reading = [t for t in tasks if set(t.stages) & set(sources)]
    assert sum(n.read for c in found.values() for n in c.counts.values()) == 10 * len(reading)


def test_a_counter_that_is_new_is_not_forgotten_when_tasks_become_one() -> None:
    assert [f.name for f in fields(Counts)] == ["read", "written", "latest", "rejected"]
    one = Counts(1, (WrittenRows("x", "t", 1, 2),), (("a", 5),), 3)
    assert add(one, one) == Counts(2, (WrittenRows("x", "t", 2, 4),), (("a", 5),), 6)


def test_a_state_that_cannot_say_which_tables_are_known_leaves_it_at_that() -> None:
    before = job(("s", ""), ("t", "s"))
    known, unknown = saved(before)[0], replace(saved(before)[0], opened=None)
    move = Move(before, before, {s.id: s.id for s in before.stages})
    assert [c.opened is None for c in transplant([known], move, "j", "2").values()] == [False]
    assert [c.opened for c in transplant([unknown], move, "j", "2").values()] == [None]
