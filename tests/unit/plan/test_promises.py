"""What `holdfast plan` says of each sink's guarantee."""

import json

from holdfast.connect.registry import Registry
from holdfast.connect.report import Report
from holdfast.model.job import Guarantee, Job
from holdfast.plan.draw import draw_mermaid, draw_text, plan_json
from holdfast.plan.load import parse_job
from holdfast.plan.promises import Promise, guarantees
from holdfast.plan.spec import Spec

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


def planned(registry: Registry) -> Job:
    report = Report()
    tree = parse_job(TEXT, "job.conf", {}, None, report)
    assert tree
    return Spec("job.conf", tree).job(registry, report)


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
    report = Report()
    tree = parse_job(text, "job.conf", {}, None, report)
    assert tree
    job = Spec("job.conf", tree).job(Registry.load(), report)
    times = [s.event_time for s in job.stages]
    assert [(t.column, t.delay_ms, t.idle_s, t.own) for t in times if t] == [
        ("at", 5000, 7.0, False), ("id", 500, 7.0, True),
    ]  # fmt: skip
    assert times[2] is None
