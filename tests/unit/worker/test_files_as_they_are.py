"""SeaTunnel's files as they are: what its own files do that no other test of ours does, run."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.cli.job_file import checked, read_tree
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.plan.record import JobSource
from holdfast.process.run_outcome import RunStatus
from holdfast.worker.attempt import WorkerRuntime
from tests.compat.run import run
from tests.compat.suite import Case

UNITED = """
env { job.mode = BATCH }
source {
  FakeSource { plugin_output = a, row.num = 2, schema { table = t, fields { n = int } } }
  FakeSource { plugin_output = a, row.num = 3, schema { table = t, fields { n = int } } }
}
transform { Sql { plugin_input = a, plugin_output = b, query = "select n, n as m from a" } }
sink { Assert { plugin_input = b, rules { row_rules = [
  { rule_type = MIN_ROW, rule_value = 5 }, { rule_type = MAX_ROW, rule_value = 5 } ] } } }
"""
EMPTY = """
env { job.mode = BATCH }
source { FakeSource { row.num = 7, schema { } } }
sink { Assert { rules { row_rules = [
  { rule_type = MIN_ROW, rule_value = 7 }, { rule_type = MAX_ROW, rule_value = 7 } ] } } }
"""
SPLIT = """
env { job.mode = BATCH }
source { FakeSource { plugin_output = fake, tables_configs = [
  { row.num = 20, int.min = 1000, int.max = 1999,
    schema = { table = "test.abc", columns = [ { name = age, type = int } ] } },
  { row.num = 20, int.min = 1000, int.max = 1999,
    schema = { table = "test.xyz", columns = [ { name = age, type = int } ] } },
  { row.num = 20, schema = { table = "test.www", columns = [ { name = age, type = int } ] } }
] } }
transform { Split {
  plugin_input = fake, plugin_output = fake1
  table_match_regex = "test.a.*"
  separator = "1", split_field = age, output_fields = [f1, f2]
  table_transform = [ {
    table_path = "test.xyz", separator = "1", split_field = age, output_fields = [f1, f2] } ]
} }
sink { Assert { rules = { tables_configs = [
  { table_path = "test.abc", field_rules = [ { field_name = f1, field_type = string,
      field_value = [ { rule_type = NOT_NULL, equals_to = "" } ] } ] },
  { table_path = "test.xyz", field_rules = [ { field_name = f2, field_type = string,
      field_value = [ { rule_type = MIN_LENGTH, rule_value = 3 } ] } ] },
  { table_path = "test.www", catalog_table_rule {
      table_path = "test.www", column_rule = [ { name = age, type = int } ] } }
] } } }
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(UNITED, id="two sources with one plugin_output are united"),
        pytest.param(EMPTY, id="an empty schema is rows without columns"),
        pytest.param(SPLIT, id="split_transform_multi_table"),
    ],
)
def test_a_file_as_it_is(text: str, tmp_path: Path, spark: SparkSession) -> None:
    file, registry, report = tmp_path / "job.conf", Registry.load(), CheckReport()
    file.write_text(text)
    tree = read_tree(file, {}, report)
    job = checked(tree, file, registry, report)
    case = Case(file, "as it is", False, {}, "==0", None)
    ended = run(JobSource(str(file), tree), job, case, WorkerRuntime(registry, lambda: spark))
    assert ended.status is RunStatus.FINISHED, ended.error
