"""Pipelines and tasks."""

from hypothesis import given
from hypothesis import strategies as st
from plan_trees import checked, job_tree, plugin

from holdfast.errors import SourceLocation
from holdfast.model.job import PipelinePlan, Role, Stage
from holdfast.model.tree import Block
from holdfast.plan.graph import split

PLACE = SourceLocation("job.conf", 1, 1)


def stage(name: str, *inputs: str) -> Stage:
    role = {"s": Role.SOURCE, "t": Role.TRANSFORM, "k": Role.SINK}[name[0]]
    return Stage(name, role, "X", Block((), PLACE), inputs, name, 1, PLACE)


def shape(stages: list[Stage], *joining: str) -> list[list[str]]:
    """Return the tasks of each pipeline as `id: stages`."""
    pipelines = split(stages, joining)
    return [[f"{t.id}: {' '.join(t.stages)}" for t in p.tasks] for p in pipelines]


def test_unconnected_parts_are_pipelines() -> None:
    stages = [stage("s1"), stage("s2"), stage("k1", "s2"), stage("k2", "s1")]
    assert shape(stages) == [["p1-t1: s1 k2"], ["p2-t1: s2 k1"]]


def test_sources_that_meet_in_a_sink_are_two_tasks_of_one_pipeline() -> None:
    stages = [stage("s1"), stage("s2"), stage("k1", "s1", "s2"), stage("k2", "s1")]
    assert shape(stages) == [["p1-t1: s1 k1 k2", "p1-t2: s2 k1"]]


def test_sources_that_meet_in_a_transform_carry_copies_of_it() -> None:
    stages = [stage("s1"), stage("s2"), stage("t1", "s1", "s2"), stage("k1", "t1")]
    assert shape(stages) == [["p1-t1: s1 t1 k1", "p1-t2: s2 t1 k1"]]


def test_sources_that_are_joined_are_one_task() -> None:
    stages = [stage("s1"), stage("s2"), stage("s3"), stage("t1", "s1", "s3"),
              stage("k1", "t1", "s2")]  # fmt: skip
    assert shape(stages, "t1") == [["p1-t1: s1 s3 t1 k1", "p1-t2: s2 k1"]]


def test_a_join_after_transforms_reaches_their_sources() -> None:
    stages = [stage("s1"), stage("s2"), stage("t1", "t2", "s2"), stage("t2", "s1"),
              stage("k1", "t1")]  # fmt: skip
    assert shape(stages, "t1") == [["p1-t1: s1 s2 t2 t1 k1"]]


def test_a_diamond_is_one_task() -> None:
    stages = [stage("s1"), stage("t1", "s1"), stage("t2", "s1"), stage("k1", "t1", "t2")]
    assert shape(stages) == [["p1-t1: s1 t1 t2 k1"]]


def test_a_plugin_says_whether_it_joins() -> None:
    def tasks(name: str) -> int:
        sources = [plugin("Rows", _out="a"), plugin("Rows", _out="b")]
        own = {"to": "x"} if name == "Rename" else {}
        transform = plugin(name, _in="a,b", _out="c", **own)
        return len(
            checked(job_tree(sources, [transform], [plugin("Print", _in="c")])).pipelines[0].tasks
        )

    assert tasks("Join") == 1
    assert tasks("Rename") == 2


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Stage], list[str]]:
    """A random checked graph: every source and transform is read, every other stage reads."""
    sources = [stage(f"s{i}") for i in range(draw(st.integers(1, 4)))]
    transforms: list[Stage] = []
    for i in range(draw(st.integers(0, 5))):
        feeders = [s.id for s in sources + transforms]
        chosen = draw(st.lists(st.sampled_from(feeders), min_size=1, max_size=3, unique=True))
        transforms.append(stage(f"t{i}", *chosen))
    offered = [s.id for s in sources + transforms]
    sinks = [
        stage(f"k{i}", *draw(st.lists(st.sampled_from(offered), min_size=1, unique=True)))
        for i in range(draw(st.integers(1, 3)))
    ]
    read = {i for s in transforms + sinks for i in s.inputs}
    sinks += [stage(f"k-{o}", o) for o in offered if o not in read]
    shuffled = draw(st.permutations(transforms))
    joining = [t.id for t in transforms if draw(st.booleans())]
    return [*sources, *shuffled, *sinks], joining


@given(graphs())
def test_every_graph_is_split_into_whole_ordered_tasks(
    graph: tuple[list[Stage], list[str]],
) -> None:
    stages, joining = graph
    pipelines = split(stages, joining)
    assert pipelines == split(stages, joining)
    by_id = {s.id: s for s in stages}
    _check_every_stage_is_in_one_pipeline(stages, pipelines)
    tasks = [t for p in pipelines for t in p.tasks]
    sources = [s for t in tasks for s in t.stages if by_id[s].role is Role.SOURCE]
    assert sorted(sources) == sorted(s.id for s in stages if s.role is Role.SOURCE)
    for task in tasks:
        roles = [list(Role).index(by_id[s].role) for s in task.stages]
        assert roles == sorted(roles)
        assert by_id[task.stages[-1]].role is Role.SINK
        for i, stage_id in enumerate(task.stages):
            inside = [f for f in by_id[stage_id].inputs if f in task.stages]
            assert all(task.stages.index(f) < i for f in inside)
            assert inside or by_id[stage_id].role is Role.SOURCE
            if stage_id in joining:
                assert len(inside) == len(by_id[stage_id].inputs)


def _check_every_stage_is_in_one_pipeline(
    stages: list[Stage], pipelines: tuple[PipelinePlan, ...]
) -> None:
    listed = [s for p in pipelines for s in p.stages]
    assert sorted(listed) == sorted(s.id for s in stages)
    home = {s: p.id for p in pipelines for s in p.stages}
    assert all(home[f] == home[s.id] for s in stages for f in s.inputs)
    assert [p.id for p in pipelines] == list(range(1, len(pipelines) + 1))
