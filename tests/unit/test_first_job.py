"""`holdfast init`: what it writes passes the check, for every source and every sink."""

import re
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.first_job import first_job, init
from holdfast.connect.checks import CheckReport
from holdfast.connect.options import describe
from holdfast.connect.plugin import Plugin
from holdfast.connect.registry import Registry
from holdfast.errors import UserError
from holdfast.model.job import Role
from holdfast.plan.check import check_job
from holdfast.plan.load import parse_job

REGISTRY = Registry.load([])


def names(role: Role) -> list[str]:
    return [n for n in REGISTRY.names(role) if not REGISTRY.named(n)[0].refused]


PAIRS = [(s, "LocalFile") for s in names(Role.SOURCE)] + [
    ("FakeSource", s) for s in names(Role.SINK)
]


@pytest.mark.parametrize(("source", "sink"), PAIRS)
def test_a_first_job_passes_the_check(source: str, sink: str) -> None:
    kinds = REGISTRY.find(Role.SOURCE, source), REGISTRY.find(Role.SINK, sink)
    assert kinds[0] and kinds[1]
    text, report = first_job(kinds[0], kinds[1]), CheckReport()
    tree = parse_job(text, "job.conf", {"SHOP_PASSWORD": "x"}, lambda path: "", report)
    assert tree and check_job(tree, "job.conf", REGISTRY, report), report.mistakes
    assert not report.mistakes


@pytest.mark.parametrize("role", [Role.SOURCE, Role.SINK])
def test_every_connector_that_needs_an_option_has_an_example(role: Role) -> None:
    for name in names(role):
        kind = REGISTRY.find(role, name)
        assert kind and (kind.example or name == "InMemory"), name


@pytest.mark.parametrize("kind", [REGISTRY.find(r, n) for r in Role for n in names(r)], ids=str)
def test_what_it_offers_does_something_and_is_a_job_files_text(kind: type[Plugin[Any]]) -> None:
    text = first_job(kind, kind)
    assert not re.search(r"Ignored|ignored here|Not supported|Refused|Makes no diff|plain=", text)
    offered = re.findall(r"^ *# ?([\w.-]+) = ", text, re.M)
    known = {info.key for info in describe(kind.options_class)}
    assert set(offered) <= known and 'job.name = "first"' in text


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    file = tmp_path / "job.conf"
    init(file, source="FakeSource", sink="Console")
    before = file.read_text()
    with pytest.raises(UserError, match="is there already"):
        init(file, source="FakeSource", sink="LocalFile")
    assert file.read_text() == before


def test_an_unknown_connector_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Did you mean 'LocalFile'"):
        init(tmp_path / "job.conf", sink="LocalFil")


def test_an_unknown_connector_names_what_spark_can_do_instead(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Spark \{ format = kafka, .* can do it"):
        init(tmp_path / "job.conf", sink="Kafka")
