"""What `holdfast plan` says of each sink: what it promises, and what it does with its rows."""

import json

import pytest

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.model.job import Guarantee, JobPlan, Role
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type
from holdfast.plan.check import check_job
from holdfast.plan.load import parse_job
from holdfast.plan.promises import MEANINGS, Promise, guarantees
from holdfast.plan.record import JobSource
from holdfast.plan.show import draw_mermaid, draw_text, plan_json

TEXT = """
env { watermark.column = id }
source { FakeSource { plugin_output = a, schema { fields { id = bigint } } } }
sink {
  Console { plugin_input = a }
  Spark { plugin_input = a, format = parquet, path = /tmp/x }
  Spark { plugin_input = a, format = jdbc, table = t }
  LocalFile { plugin_input = a, path = /tmp/y }
}
"""
PRINTED = "at-least-once (a row that is printed cannot be taken back)"


def planned(registry: Registry) -> JobPlan:
    report = CheckReport()
    tree = parse_job(TEXT, "job.conf", {}, None, report)
    assert tree
    return JobSource("job.conf", tree).job(registry, report)


def test_each_sink_says_what_it_promises_with_its_options_and_why() -> None:
    registry = Registry.load()
    job = planned(registry)
    assert guarantees(job, registry) == {
        "Sink[0]-Console": Promise(
            Guarantee.AT_LEAST_ONCE, "a row that is printed cannot be taken back"
        ),
        "Sink[1]-Spark": Promise(Guarantee.EXACTLY_ONCE),
        "Sink[2]-Spark": Promise(
            Guarantee.AT_LEAST_ONCE, "Spark's own writers show rows as they write them"
        ),
        "Sink[3]-LocalFile": Promise(Guarantee.EXACTLY_ONCE),
    }
    assert f"Sink[0]-Console, {PRINTED}" in draw_text(job, registry)
    assert f"Sink[0]-Console<br/>{PRINTED}" in draw_mermaid(job, registry)
    stages = {s["id"]: s for s in json.loads(plan_json(job, registry))["stages"]}
    assert stages["Sink[1]-Spark"]["guarantee"] == "exactly-once"
    assert "guarantee_why" not in stages["Sink[1]-Spark"]
    assert stages["Sink[2]-Spark"]["guarantee_why"].startswith("Spark's own writers")
    assert stages["Source[0]-FakeSource"]["watermark_column"] == "id"


def test_a_source_may_say_otherwise_than_env() -> None:
    text = """
env { watermark.column = at, watermark.delay.seconds = 5, watermark { idle.seconds = 7 } }
source {
  FakeSource { plugin_output = a, schema { fields { id = bigint } } }
  FakeSource { plugin_output = b, watermark.column = id, "watermark.delay.seconds" = 0.5
    schema { fields { id = bigint } } }
}
sink { Console { plugin_input = [a, b] } }
"""
    report = CheckReport()
    tree = parse_job(text, "job.conf", {}, None, report)
    assert tree
    job = JobSource("job.conf", tree).job(Registry.load(), report)
    times = [s.event_time for s in job.stages]
    assert [(t.column, t.delay_ms, t.idle_s, t.own) for t in times if t] == [
        ("at", 5000, 7.0, False), ("id", 500, 7.0, True),
    ]  # fmt: skip
    assert times[2] is None


SOURCE = "FakeSource { schema { table = people, fields { id = int, name = string } } }"
ADDED, REPLACED = "rows are added", "rows replace those with the same id"
DEFAULTS = {
    "schema_save_mode": "CREATE_SCHEMA_WHEN_NOT_EXIST", "data_save_mode": "APPEND_DATA",
}  # fmt: skip
SERVER = 'url = "jdbc:postgresql://h:1/shop", user = u, password = hush'
KEYED = "paimon.table.primary-keys = id"
KEYED += ", paimon.table.write-props { bucket = 1, sequence.field = id }"
WRITES: dict[str, tuple[str, str, str, dict[str, str]]] = {
    # the sink, where its rows go, what becomes of them, and of what is there
    "Assert": (
        "Assert { rules { row_rules = [{ rule_type = MIN_ROW, rule_value = 1 }] } }", "",
        "rows are checked and dropped", {},
    ),
    "Console": ("Console {}", "standard output", "rows are printed", {}),
    "Delta": (
        'Delta { path = "/w/${table_name}", partition_keys = [name] }', "/w/people",
        f"{ADDED}, partitioned by name", DEFAULTS,
    ),
    "Delta, anew": (
        'Delta { path = "/w/t", schema_save_mode = RECREATE_SCHEMA, data_save_mode = DROP_DATA }',
        "/w/t", ADDED,
        {"schema_save_mode": "RECREATE_SCHEMA", "data_save_mode": "DROP_DATA"},
    ),
    "Iceberg": (
        'Iceberg { iceberg.catalog.config { type = hadoop, warehouse = "/w" }, namespace = n,'
        " table = t, iceberg.table.partition-keys = name }",
        "table n.t of /w", f"{ADDED}, partitioned by name", DEFAULTS,
    ),
    "InMemory": ("InMemory {}", "", "rows are counted and dropped", {}),
    "Jdbc": (
        f"Jdbc {{ {SERVER}, table = public.t, primary_keys = [id] }}",
        "postgresql at h:1/shop, table public.t", REPLACED, DEFAULTS,
    ),
    "Jdbc, no upsert": (
        f"Jdbc {{ {SERVER}, table = t, primary_keys = [id], enable_upsert = false }}",
        "postgresql at h:1/shop, table t", ADDED, DEFAULTS,
    ),
    "Jdbc, query": (
        f'Jdbc {{ {SERVER}, query = "insert into t values (?, ?)" }}',
        "postgresql at h:1/shop", "each row goes through query", {},
    ),
    "LocalFile": (
        'LocalFile { path = "/w", file_format_type = csv, have_partition = true,'
        " partition_by = [name], data_save_mode = ERROR_WHEN_DATA_EXISTS }",
        "/w", f"{ADDED}, partitioned by name",
        {**DEFAULTS, "data_save_mode": "ERROR_WHEN_DATA_EXISTS"},
    ),
    "Paimon": (
        f'Paimon {{ warehouse = "/w", database = d, table = t, {KEYED} }}', "/w/d.db/t", REPLACED,
        DEFAULTS,
    ),
    "Paimon, added": (
        'Paimon { warehouse = "/w", database = d, table = t, paimon.table.partition-keys = name }',
        "/w/d.db/t", f"{ADDED}, partitioned by name", DEFAULTS,
    ),
    "Spark": (
        'Spark { format = parquet, path = "/w", mode = overwrite, partition_by = [name] }', "/w",
        f"{ADDED}, partitioned by name", {"mode": "overwrite"},
    ),
    "Spark, table": ("Spark { format = parquet, table = t }", "table t", ADDED, {"mode": "append"}),
}  # fmt: skip


def test_every_sink_is_in_the_list() -> None:
    registry = Registry.load()
    kinds = [registry.find(Role.SINK, name) for name in registry.names(Role.SINK)]
    assert {n.partition(",")[0] for n in WRITES} == {k.name for k in kinds if k and not k.refused}


@pytest.mark.parametrize("name", WRITES)
def test_a_plan_shows_what_each_sink_does_with_its_rows(name: str) -> None:
    sink, where, how, modes = WRITES[name]
    registry, report = Registry.load(), CheckReport()
    text = f"env {{ job.mode = BATCH }}\nsource {{ {SOURCE} }}\nsink {{ {sink} }}\n"
    tree = parse_job(text, "job.conf", {}, None, report)
    job = check_job(tree, "job.conf", registry, report) if tree else None
    assert job, report.mistakes
    (stage,) = job.of(Role.SINK)
    columns = (Column("id", Type("int")), Column("name", Type("string")))
    tables = {stage.id: (Table(TablePath("people"), columns),)}
    (_, shown) = json.loads(plan_json(job, registry, tables))["stages"]
    (one,) = shown["writes"]
    assert (one["table"], one["destination"], one["how"]) == ("people", where, how)
    assert shown.get("save_modes", {}) == modes
    drawn = " ".join(draw_text(job, registry, tables).split())
    assert how in drawn
    if where:
        assert f"people to {where}: {how}" in drawn
        assert f"people to {where}" in draw_mermaid(job, registry, tables)
    for option, value in modes.items():
        assert f"{option} = {value}: {MEANINGS[value]}" in drawn
        assert drawn.count(f"{option} =") == 1, "once, given or not"
    assert "hush" not in drawn + json.dumps(shown)
