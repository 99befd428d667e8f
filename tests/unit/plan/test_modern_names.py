"""`holdfast convert FILE`: an old file in today's names, and nothing else."""

from pathlib import Path

import pytest
from parse_texts import job

from holdfast.cli.convert import convert
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.plan.load import parse_job
from holdfast.plan.modern_names import rewritten
from holdfast.plan.record import JobSource

REGISTRY = Registry.load()
OLD = """\
# ours since 2021
env {
  execution.parallelism = 2   # two
  job_mode = "BATCH"
  execution.checkpoint.interval = 5000
  savepoint.retained.seconds = 7
}
source {
  fakesource {
    result_table_name = "rows"
    schema = { fields { name = "string", "source_table_name" = "int" } }
  }
}
transform { Filter { "source_table_name" : rows, result_table_name=few, fields = [name] } }
sink {
  localfile { path = "/x/${dt}", file_format_type = csv,
    delimiter = ",", source_table_name = few }
  Assert { plugin_input = rows, rules { rule_ruls = [{rule_type = MIN_ROW, rule_value = 1}] } }
}
"""
NEW = """\
# ours since 2021
env {
  parallelism = 2   # two
  job.mode = "BATCH"
  checkpoint.interval = 5000
  savepoint.retained.seconds = 7
}
source {
  FakeSource {
    plugin_output = "rows"
    schema = { fields { name = "string", "source_table_name" = "int" } }
  }
}
transform { Filter { "plugin_input" : rows, plugin_output=few, include_fields = [name] } }
sink {
  LocalFile { path = "/x/${dt}", file_format_type = csv,
    field_delimiter = ",", plugin_input = few }
  Assert { plugin_input = rows, rules { row_rules = [{rule_type = MIN_ROW, rule_value = 1}] } }
}
"""


def renamed(text: str, file: str = "job.conf") -> tuple[str, list[str], list[str]]:
    """Return the new text, what was changed, and what is left."""
    tree = parse_job(text, file, {}, None, CheckReport(allow_unset=True))
    assert tree
    done = rewritten(text, file, tree, REGISTRY)
    return done.text, [str(r) for r in done.renamed], [str(m) for m in done.left]


def test_an_old_file_has_todays_names_and_is_else_as_it_was() -> None:
    text, changed, left = renamed(OLD)
    assert text == NEW
    assert len(changed) == 12 and not left
    assert changed[0] == "job.conf:3:3: execution.parallelism is parallelism now."
    assert renamed(NEW) == (NEW, [], [])


def test_the_job_is_the_same() -> None:
    jobs = [
        JobSource("job.conf", job(text.replace("${dt}", "x"))).job(REGISTRY, CheckReport())
        for text in (OLD, NEW)
    ]
    assert [s.inputs for s in jobs[0].stages] == [s.inputs for s in jobs[1].stages]
    assert jobs[0].pipelines == jobs[1].pipelines
    assert [s.options for s in jobs[0].stages] != [s.options for s in jobs[1].stages]
    assert jobs[0].parallelism == jobs[1].parallelism == 2


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (
            "job.json",
            '{"env": {"execution.parallelism": 2}, "source": [{"plugin_name": "fakesource",'
            ' "result_table_name": "a"}], "sink": [{"plugin_name": "Console"}]}',
            '{"env": {"parallelism": 2}, "source": [{"plugin_name": "FakeSource",'
            ' "plugin_output": "a"}], "sink": [{"plugin_name": "Console"}]}',
        ),
        (
            "job.yaml",
            "env:\n  job_mode: BATCH\nsource:\n  - plugin_name: FakeSource\n"
            "    'result_table_name': a\nsink:\n  - plugin_name: console\n",
            "env:\n  job.mode: BATCH\nsource:\n  - plugin_name: FakeSource\n"
            "    'plugin_output': a\nsink:\n  - plugin_name: Console\n",
        ),
        (
            "job.sql",
            "CREATE TABLE a WITH ('connector' = 'fakesource', 'type' = 'source');\n"
            "CREATE TABLE z WITH ('connector' = 'LocalFile', 'type' = 'sink', 'delimiter' = ',');\n"
            "INSERT INTO z SELECT * FROM a;\n",
            "CREATE TABLE a WITH ('connector' = 'FakeSource', 'type' = 'source');\n"
            "CREATE TABLE z WITH ('connector' = 'LocalFile', 'type' = 'sink',"
            " 'field_delimiter' = ',');\n"
            "INSERT INTO z SELECT * FROM a;\n",
        ),
    ],
)
def test_every_format_is_rewritten(file: str, old: str, new: str) -> None:
    text, changed, left = renamed(old, file)
    assert text == new
    assert changed and not left


def test_what_is_not_written_in_one_piece_is_left_and_told() -> None:
    text = "env { execution { checkpoint.interval = 5 } }\nsource { FakeSource { } }"
    assert renamed(text) == (
        text,
        [],
        ["job.conf:1:19: 'execution.checkpoint.interval' is 'checkpoint.interval' now. It is not"
         " written in one piece, so change it by hand."],
    )  # fmt: skip


def test_a_name_that_is_there_twice_is_left_and_told() -> None:
    text = "source { FakeSource { plugin_output = a, result_table_name = b } }"
    assert renamed(text)[2] == [
        "job.conf:1:42: 'plugin_output' is there too and wins: remove 'result_table_name'."
    ]


def test_the_verb_prints_the_file_or_changes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.conf"
    file.write_text(OLD)
    convert(file)
    said = capsys.readouterr()
    assert said.out == NEW and file.read_text() == OLD
    assert "12 names changed." in said.err
    convert(file, write=True)
    assert file.read_text() == NEW and not capsys.readouterr().out
    convert(file, write=True)
    assert file.read_text() == NEW and "0 names changed." in capsys.readouterr().err
