"""From a tree to a job."""

from typing import Any

import pytest
from plan_trees import (
    FILE,
    RenameTransform,
    check,
    checked,
    errors,
    job_tree,
    plugin,
    registry,
    tree,
)

from holdfast.model.job import Role
from holdfast.plan.plugins import TransformSelection, build_plugin, choose_transform, context_for


def choice(**given: Any) -> TransformSelection:
    """Return the choice of a Rename transform with these options."""
    job = checked(job_tree([plugin("Rows")], [plugin("Rename", **given)], [plugin("Print")]))
    stage = job.of(Role.TRANSFORM)[0]
    return choose_transform(
        stage, registry(), context_for(job, job.pipelines[0].tasks[0], stage, "1", False)
    )


def name_for(found: TransformSelection, path: str) -> str | None:
    transform = found.of(path)
    assert transform is None or isinstance(transform, RenameTransform)
    return transform.options.to if transform else None


def test_stages_carry_what_the_worker_needs() -> None:
    job = checked(job_tree([plugin("rows", count=9)], [], [plugin("PRINT")], parallelism=2))
    source, sink = job.stages
    assert (source.id, source.role, source.plugin) == ("Source[0]-Rows", Role.SOURCE, "Rows")
    assert (sink.id, sink.plugin, sink.inputs) == ("Sink[0]-Print", "Print", ("Source[0]-Rows",))
    assert (source.place.line, source.output, job.file) == (4, None, FILE)
    built = build_plugin(
        source, registry(), context_for(job, job.pipelines[0].tasks[0], source, "1", False)
    )
    assert built.options.count == 9
    assert (built.context.parallelism, built.context.checkpointing) == (2, False)


def test_parallelism_comes_from_the_stage_its_input_or_env() -> None:
    sources = [plugin("Rows", _out="a"), plugin("Rows", _out="b", parallelism=5)]
    transforms = [plugin("Rename", to="x", _in="b", _out="c")]
    sinks = [plugin("Print", _in="a"), plugin("Print", _in=["c", "a"], parallelism=7),
             plugin("Print", _in=["c", "a"])]  # fmt: skip
    job = checked(job_tree(sources, transforms, sinks, parallelism=2))
    assert [s.parallelism for s in job.stages] == [2, 5, 5, 2, 7, 5]


def test_all_mistakes_come_at_once() -> None:
    source = plugin("Rows", count="many", _out="rows", parallelism=0, pasword="x")
    found = errors(
        tree(
            {
                "env": {"job.mode": "x"},
                "source": [source],
                "transform": [plugin("Rename", _in="rows", _out="a"), plugin("Old", _in="b")],
                "sink": [plugin("Prnt", _in="a")],
            }
        )
    )
    assert found == [
        "2: env: job.mode must be BATCH or STREAMING, not 'x'.",
        "5: source Rows: count must be a whole number, not 'many'.",
        "7: source Rows: parallelism must be at least 1, not 0.",
        "8: source Rows: unknown option 'pasword'. Did you mean 'password'?",
        "10: transform Rename: required option 'to' (string) is missing. The new name.",
        "13: transform Old: it left the building. Use Rename.",
        "14: transform Old: plugin_input 'b' is unknown: no source or transform has it as"
        " plugin_output. Names that can be read: rows, a.",
        "16: sink Prnt: there is no sink of this name. Did you mean 'Print'?"
        " Known sinks: Both, Print.",
    ]


def test_an_unknown_plugin_that_has_another_role_is_told_so() -> None:
    assert errors(job_tree([plugin("Print")], [], [plugin("Rows")])) == [
        "3: source Print: there is no source of this name. It is a sink."
        " Known sources: Both, Rows.",
        "6: sink Rows: there is no sink of this name. It is a source. Known sinks: Both, Print.",
    ]


@pytest.mark.parametrize("empty", [[], {}, None])
def test_a_job_needs_sources_and_sinks(empty: Any) -> None:
    given = {"source": empty, "sink": empty} if empty is not None else {"transform": []}
    assert [e.partition(": ")[2] for e in errors(tree(given))] == [
        "The job has no sink. Name at least one plug-in in sink { ... }.",
        "The job has no source. Name at least one plug-in in source { ... }.",
    ]


def test_other_things_at_the_top_are_mistakes() -> None:
    job = tree(
        {
            "sources": [plugin("Rows")],
            "parallelism": 3,
            "folder": "x",
            "source": [plugin("Rows")],
            "sink": [plugin("Print")],
        }
    )
    assert errors(job) == [
        "1: 'sources' is not a part of a job file: env, source, transform, sink are."
        " Did you mean 'source'?",
        "3: 'parallelism' is not a part of a job file. Did you mean to put it into env { ... }?",
    ]
    made, report = check(job, lenient=True)
    assert made
    assert [w.message for w in sorted(report.warnings)][2:] == [
        "'folder' is not a part of a job file. It is used only as ${folder}."
    ]


def test_python_needs_permission() -> None:
    job = job_tree([plugin("Rows")], [plugin("Code")], [plugin("Print")])
    assert errors(job) == [
        "5: transform Code: this job brings Python code, which runs with all the rights of the"
        " worker. If you trust it, allow it with --allow-python or HOLDFAST_ALLOW_PYTHON=1."
    ]
    assert checked(job, allow_python=True)


def test_unknown_options_are_left_out_when_lenient() -> None:
    made, report = check(
        job_tree([plugin("Rows", colour="red")], [], [plugin("Print")]), lenient=True
    )
    assert made
    assert [w.message for w in report.warnings] == [
        "source Rows: unknown option 'colour'. Its options: count, password, pin. It is ignored."
    ]
    source = made.stages[0]
    built = build_plugin(
        source, registry(), context_for(made, made.pipelines[0].tasks[0], source, "1", False)
    )
    assert built.options.count == 5


def test_names_that_are_no_text_are_not_echoed_by_the_wiring() -> None:
    sources = [plugin("Rows", _out={"a": 1}), plugin("Rows", _out="b")]
    sinks = [plugin("Print", _in=[["a"]])]
    assert errors(job_tree(sources, [], sinks)) == [
        "5: source Rows: plugin_output must be text, not a block.",
        '11: sink Print: plugin_input: it holds dataset names: give "a", "a,b" or ["a", "b"].',
    ]


def test_a_transform_takes_every_table_by_default() -> None:
    assert name_for(choice(to="x"), "shop.orders") == "x"


def test_a_regex_must_match_the_whole_path() -> None:
    found = choice(to="x", table_match_regex="shop.o.*")
    assert [name_for(found, p) for p in ("shop.orders", "my.shop.orders", "shop.users")] == [
        "x",
        None,
        None,
    ]


def test_options_of_a_table_win_over_the_regex() -> None:
    tables = [{"table_path": "shop.orders", "to": "y"}]
    found = choice(to="x", table_match_regex="shop..*", table_transform=tables)
    assert name_for(found, "shop.orders") == "y"
    assert name_for(found, "shop.users") == "x"
    assert name_for(found, "users") is None


def test_tables_without_options_pass_through_where_only_tables_have_them() -> None:
    found = choice(table_transform=[{"table_path": "shop.orders", "to": "y"}])
    assert name_for(found, "shop.orders") == "y"
    assert name_for(found, "shop.users") is None


def test_options_of_a_table_are_checked() -> None:
    tables = [{"table_path": "a", "too": "y"}, {"to": "y"}, {"table_path": "a", "to": "z"}]
    rename = plugin("Rename", table_transform=tables, table_match_regex="(")
    assert errors(job_tree([plugin("Rows")], [rename], [plugin("Print")])) == [
        "5: transform Rename: required option 'to' (string) is missing. The new name.",
        "7: transform Rename: table_transform[0]: required option 'to' (string) is missing."
        " The new name.",
        "8: transform Rename: table_transform[0]: unknown option 'too'. Did you mean 'to'?",
        "9: transform Rename: table_transform[1]: required option 'table_path' is missing."
        " Name the table that these options are for.",
        "10: transform Rename: table_transform[2]: table 'a' occurs twice. Keep one.",
        "12: transform Rename: table_match_regex: '(' is not a regular expression: missing ),"
        " unterminated subpattern at position 0. It must match whole table paths, such as"
        " 'shop\\\\..*'.",
    ]


def test_a_transform_that_sees_all_tables_takes_no_table_options() -> None:
    join = plugin("Join", table_match_regex=".*")
    assert errors(job_tree([plugin("Rows")], [join], [plugin("Print")])) == [
        "6: transform Join: unknown option 'table_match_regex'. Its options: on. Remove it, or"
        " run with --lenient to ignore unknown options as SeaTunnel does."
    ]


def test_a_secret_of_the_wrong_type_is_not_shown() -> None:
    found = errors(job_tree([plugin("Rows", password=["hunter2"])], [], [plugin("Print")]))
    assert found == ["4: source Rows: password must be text, not a list."]


def test_things_that_are_no_plugins_are_named() -> None:
    assert errors(tree({"env": [1], "source": [{"a": 1}], "sink": "x"})) == [
        "1: env is not a block { ... }. Give its options inside braces.",
        "3: source: a plug-in is its name and a block of options, such as FakeSource { ... };"
        ' in JSON and YAML, a block with "plugin_name".',
        "4: sink: a plug-in is its name and a block of options, such as Console { ... };"
        ' in JSON and YAML, a block with "plugin_name".',
    ]
