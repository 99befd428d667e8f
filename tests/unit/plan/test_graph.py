"""Which stage feeds which."""

from typing import Any

from plan_trees import check, checked, errors, job_tree, plugin

from holdfast.model.tree import Block


def inputs(tree: Block) -> dict[str, tuple[str, ...]]:
    return {s.id: s.inputs for s in checked(tree).stages}


def warnings(tree: Block) -> list[str]:
    made, report = check(tree)
    assert made
    return [m.message for m in report.warnings]


def chain(*transforms: dict[str, Any], sink: dict[str, Any] | None = None) -> Block:
    source = plugin("Rows", _out="rows")
    return job_tree([source], list(transforms), [sink or plugin("Print")])


def test_a_source_and_a_sink_need_no_names() -> None:
    assert inputs(job_tree([plugin("Rows")], [], [plugin("Print")])) == {
        "Source[0]-Rows": (),
        "Sink[0]-Print": ("Source[0]-Rows",),
    }


def test_a_sink_without_a_name_reads_the_last_transform() -> None:
    tree = chain(plugin("Rename", to="a", _in="rows", _out="renamed"))
    assert inputs(tree)["Sink[0]-Print"] == ("Transform[0]-Rename",)
    assert warnings(tree) == []


def test_transforms_without_names_read_each_other_in_order() -> None:
    tree = chain(*(plugin("Rename", to=t) for t in "abc"))
    assert inputs(tree) == {
        "Source[0]-Rows": (),
        "Transform[0]-Rename": ("Source[0]-Rows",),
        "Transform[1]-Rename": ("Transform[0]-Rename",),
        "Transform[2]-Rename": ("Transform[1]-Rename",),
        "Sink[0]-Print": ("Transform[2]-Rename",),
    }


def test_a_wrong_name_in_a_simple_job_falls_back_with_a_warning() -> None:
    tree = chain(plugin("Rename", to="a", _out="new"), sink=plugin("Print", _in="${table_name}"))
    assert inputs(tree)["Sink[0]-Print"] == ("Transform[0]-Rename",)
    assert warnings(tree) == [
        "sink Print: no source or transform has the plugin_output '${table_name}'. The rows of"
        " Transform[0]-Rename are read instead, as SeaTunnel does."
        " Give plugin_input = 'rows' or 'new'."
    ]


def test_a_wrong_name_beside_a_right_one_is_left_out() -> None:
    tree = job_tree([plugin("Rows", _out="rows")], [], [plugin("Print", _in="rows,other")])
    assert inputs(tree)["Sink[0]-Print"] == ("Source[0]-Rows",)
    assert [w[:85] for w in warnings(tree)] == [
        "sink Print: no source or transform has the plugin_output 'other'. It is left out, as "
    ]


def test_a_name_where_nobody_has_one_can_only_be_removed() -> None:
    tree = job_tree([plugin("Rows")], [], [plugin("Print", _in="rows")])
    assert warnings(tree)[0].endswith("as SeaTunnel does. Remove plugin_input.")


def test_a_transform_may_keep_the_name_it_reads_in_a_simple_job() -> None:
    tree = chain(
        plugin("Rename", to="a", _in="rows", _out="rows"), sink=plugin("Print", _in="rows")
    )
    assert inputs(tree)["Transform[0]-Rename"] == ("Source[0]-Rows",)
    assert inputs(tree)["Sink[0]-Print"] == ("Transform[0]-Rename",)


def test_a_transform_that_the_only_sink_passes_by_is_left_out_with_a_warning() -> None:
    tree = chain(plugin("Rename", to="a", _in="rows", _out="new"), sink=plugin("Print", _in="rows"))
    assert list(inputs(tree)) == ["Source[0]-Rows", "Sink[0]-Print"]
    assert warnings(tree) == [
        "transform Rename: the sink does not read its rows under 'new', so the job runs without"
        " this transform, as in SeaTunnel. Name it as the sink's plugin_input, or remove it."
    ]


def test_a_wrong_name_in_a_longer_chain_is_a_mistake() -> None:
    tree = chain(plugin("Rename", to="a", _out="one"), plugin("Rename", to="b", _in="oen"))
    assert errors(tree) == [
        "11: transform Rename: plugin_input 'oen' is unknown: no source or transform has it as"
        " plugin_output. Did you mean 'one'? Names that can be read: rows, one."
    ]


def test_a_placeholder_in_a_longer_chain_falls_back() -> None:
    tree = chain(
        plugin("Rename", to="a"), plugin("Rename", to="b"), sink=plugin("Print", _in="${table}")
    )
    assert inputs(tree)["Sink[0]-Print"] == ("Transform[1]-Rename",)
    assert len(warnings(tree)) == 1


def test_old_names_lists_and_commas_name_inputs() -> None:
    sources = [plugin("Rows", result_table_name="a"), plugin("Rows", _out="b")]
    sinks = [plugin("Print", source_table_name=["a", "b"]), plugin("Print", _in=" b , a,b ")]
    found = inputs(job_tree(sources, [], sinks))
    assert found["Sink[0]-Print"] == ("Source[0]-Rows", "Source[1]-Rows")
    assert found["Sink[1]-Print"] == ("Source[1]-Rows", "Source[0]-Rows")


def test_transforms_may_stand_in_any_order() -> None:
    transforms = [
        plugin("Rename", to="b", _in="one", _out="two"),
        plugin("Rename", to="a", _in="rows", _out="one"),
    ]
    tree = chain(*transforms, sink=plugin("Print", _in="two"))
    assert inputs(tree)["Transform[0]-Rename"] == ("Transform[1]-Rename",)


def test_a_graph_needs_every_name() -> None:
    tree = job_tree([plugin("Rows"), plugin("Rows", _out="b")], [], [plugin("Print")])
    assert errors(tree) == [
        "3: source Rows: plugin_output is missing. In a job with several sources or sinks each"
        " source and transform needs a name that others can read it by.",
        "8: sink Print: plugin_input is missing. In a job with several sources or sinks each"
        " transform and sink must say what it reads. Names that can be read: b.",
    ]


def test_a_wrong_name_in_a_graph_is_a_mistake_and_not_echoed() -> None:
    sinks = [plugin("Print", _in="orders"), plugin("Print", _in="user")]
    sources = [plugin("Rows", _out="orders"), plugin("Rows", _out="users")]
    assert errors(job_tree(sources, [], sinks)) == [
        "12: sink Print: plugin_input 'user' is unknown: no source or transform has it as"
        " plugin_output. Did you mean 'users'? Names that can be read: orders, users."
    ]


def test_rows_that_nobody_reads_are_a_mistake_in_a_graph() -> None:
    sources = [plugin("Rows", _out="orders"), plugin("Rows", _out="users")]
    assert errors(job_tree(sources, [], [plugin("Print", _in="orders")])) == [
        "6: source Rows: no stage reads its plugin_output 'users'. Name it as plugin_input of a"
        " transform or sink, or remove this source."
    ]


def test_two_sources_with_one_plugin_output_are_united() -> None:
    sources = [plugin("Rows", _out="rows"), plugin("Rows", _out="rows"), plugin("Rows", _out="x")]
    made = checked(job_tree(sources, [], [plugin("Print", _in=["x", "rows"])]))
    assert made.stages[-1].inputs == (
        "Source[2]-Rows",
        "Source[0]-Rows",
        "Source[1]-Rows",
    )


def test_a_name_of_a_source_is_not_free_for_a_transform() -> None:
    renames = [plugin("Rename", to="x", _in="rows", _out="rows")]
    sources = [plugin("Rows", _out="rows"), plugin("Rows", _out="rows")]
    assert errors(job_tree(sources, renames, [plugin("Print", _in="rows")])) == [
        "11: transform Rename: plugin_output 'rows' is taken by source Rows on line 4."
        " Choose another name."
    ]


def test_a_circle_is_named_once() -> None:
    transforms = [
        plugin("Rename", to="x", _in="b", _out="a"),
        plugin("Rename", to="x", _in="a", _out="b"),
    ]
    tree = chain(*transforms, sink=plugin("Print", _in="rows"))
    assert errors(tree) == [
        "8: transform Rename: it waits for itself: 'a' reads 'b' reads 'a'."
        " Break the circle by letting one of them read a source."
    ]


def test_a_stage_that_reads_itself_is_a_mistake() -> None:
    transforms = [
        plugin("Rename", to="x", _in="a", _out="a"),
        plugin("Rename", to="x", _in="a", _out="b"),
    ]
    assert errors(chain(*transforms)) == [
        "8: transform Rename: it reads its own output 'a'. Let it read another source or transform."
    ]


def test_ends_that_a_role_has_not_got_are_ignored_with_a_warning() -> None:
    tree = job_tree([plugin("Rows", _in="x")], [], [plugin("Print", _out="y")])
    assert warnings(tree) == [
        "source Rows: plugin_input has no effect: a source reads no dataset.",
        "sink Print: plugin_output has no effect: nothing follows a sink.",
    ]
