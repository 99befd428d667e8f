"""Metrics: two parsers of Prometheus's own accept them, and they say what is true."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from holdfast.api.metrics import METRICS
from holdfast.api.routes import metrics as module
from tests.api.served import STREAM, Served, served

DEPLOY = Path(__file__).parents[2] / "deploy"


async def samples(master: Served) -> dict[str, list[Any]]:
    text = (await master.http.get("/metrics")).text
    found: dict[str, list[Any]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def test_both_formats_are_accepted_and_say_the_same(tmp_path: Path) -> None:
    async def test(master: Served) -> None:
        name = 'a "quoted" name\\\\with\\nlines'
        await master.submit("17", STREAM.replace("job.name = stream", f'job.name = "{name}"'))
        await master.runs("17")
        await master.checkpoint("17", 100)
        await asyncio.sleep(0.05)
        answer = await master.http.get("/openmetrics")
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        strict = {f.name: f for f in openmetrics.text_string_to_metric_families(answer.text)}
        plain = await samples(master)
        assert len(strict) > 30 and "holdfast_job_health" in strict
        assert strict["holdfast_job_rows_committed"].type == "counter"
        (age,) = plain["holdfast_job_checkpoint_age_seconds"]
        assert 0 <= age.value < 60 and age.labels["job"] == "17" and age.labels["pipeline"] == "1"
        expected = {
            "holdfast_job_rows_committed_total": 100, "holdfast_job_bytes_written_total": 800,
            "holdfast_job_health": 0, "holdfast_job_checkpoint_interval_seconds": 60,
            "holdfast_job_restarts_total": 0, "holdfast_term": 1, "holdfast_leads": 1,
            "holdfast_slots": 8, "holdfast_slots_used": 1, "holdfast_workers": 1,
        }  # fmt: skip
        assert {k: plain[k][0].value for k in expected} == expected
        done = {s.labels["outcome"]: s.value for s in plain["holdfast_job_checkpoints_total"]}
        assert done == {"completed": 1, "failed": 0}
        assert plain["holdfast_job_checkpoint_size_bytes"][0].value > 100
        assert plain["holdfast_job_checkpoint_duration_seconds"][0].value > 0
        assert plain["holdfast_store_seconds_count"][0].value > 0
        types = {s.labels["type"] for s in plain["job_count"]}
        assert types == {"canceled", "cancelling", "created", "failed", "failing", "finished",
                         "running", "scheduled"}  # fmt: skip

    served(tmp_path, test)


def test_the_number_of_series_is_bounded(tmp_path: Path, monkeypatch: Any) -> None:
    async def test(master: Served) -> None:
        monkeypatch.setattr(module, "JOBS_MAX", 2)
        for number in range(4):
            await master.submit(f"job-{number}")
        found = await samples(master)
        assert len(found["holdfast_job_health"]) == 2
        assert found["holdfast_metrics_jobs_left_out"][0].value == 2
        await master.http.post("/api/jobs/job-0/cancel")
        while (await master.get("/api/jobs/job-0"))["status"] != "CANCELED":
            await asyncio.sleep(0.01)
        names = {s.labels["job"] for s in (await samples(master))["holdfast_job_health"]}
        assert names == {"job-1", "job-2"}, "what is over has no series"

    served(tmp_path, test)


def known() -> set[str]:
    names = set()
    for metric in METRICS:
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}
        names |= {metric.name + suffix for suffix in suffixes.get(metric.kind, [""])}
    return names


def used(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:holdfast|process)_\w+", expression))


def test_the_dashboard_and_the_alerts_use_metrics_that_exist() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    panels = dashboard["panels"]
    assert dashboard["uid"] and dashboard["schemaVersion"] >= 36 and len(panels) >= 10
    assert len({p["id"] for p in panels}) == len(panels)
    asked = {e for p in panels for t in p.get("targets", ()) for e in used(t["expr"])}
    assert asked and asked <= known(), asked - known()
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())
    alerts = [r for g in rules["groups"] for r in g["rules"]]
    assert {"HoldfastJobStalled", "HoldfastNobodyLeads"} <= {a["alert"] for a in alerts}
    for alert in alerts:
        assert used(alert["expr"]) <= known() and used(alert["expr"])
        assert alert["labels"]["severity"] and alert["annotations"]["summary"]
