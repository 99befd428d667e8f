"""What sources and sinks are known by, read from real job files with the real connectors."""

from types import ModuleType

import pytest

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import describe, options
from holdfast.connect.registry import Registry
from holdfast.connect.source import Source
from holdfast.errors import JobFileError
from holdfast.model.identity import StageIdentity
from holdfast.model.job import Role
from holdfast.model.secret import Secret
from holdfast.plan.check import check_job
from holdfast.plan.load import parse_job
from holdfast.plan.plugins import identities


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.load()


def found(registry: Registry, text: str) -> dict[str, StageIdentity]:
    report = CheckReport()
    tree = parse_job(text, "job.conf", {}, None, report)
    job = check_job(tree, "job.conf", registry, report) if tree else None
    report.raise_if_any()
    assert job
    return {one.stage: one for one in identities(job, registry)}


def one(registry: Registry, source: str = "", sink: str = "", env: str = "") -> StageIdentity:
    source_text = source or "FakeSource { schema { fields { id = int } } }"
    sink_text = sink or "Console {}"
    text = f"""env {{ job.mode = BATCH, {env} }}
source {{ {source_text} }}
sink {{ {sink_text} }}"""
    return next(
        s for s in found(registry, text).values() if (s.role is Role.SOURCE) == bool(source)
    )


def test_every_source_and_sink_says_what_it_is_known_by(registry: Registry) -> None:
    for role in (Role.SOURCE, Role.SINK):
        for name in registry.names(role):
            plugin = registry.find(role, name)
            assert plugin
            assert plugin.placeless == (name in ("Assert", "Console", "InMemory"))
            if not plugin.refused and not plugin.placeless:
                assert any(o.identity for o in describe(plugin.options_class)), f"{role} {name}"


SAME = {
    "LocalFile": (
        'LocalFile { path = "/data/a/", file_format_type = csv, schema { fields { id = int } } }',
        'LocalFile { path = "file:///data/a", file_format_type = json, plugin_output = x,'
        " parallelism = 3, schema { fields { id = int, more = string } } }",
        'LocalFile { path = "/data/b", file_format_type = csv, schema { fields { id = int } } }',
    ),
    "FakeSource": (
        "FakeSource { row.num = 7, schema { table = t, fields { id = int } } }",
        "FakeSource { row.num = 7, string.length = 9, schema { table = t, fields { id = long } } }",
        "FakeSource { row.num = 7, schema { table = u, fields { id = int } } }",
    ),
    "Spark": (
        'Spark { format = csv, path = "/data/a", options { sep = ";" } }',
        'Spark { format = csv, path = "file:/data/a", options { sep = ",", pasword = x } }',
        'Spark { format = csv, path = "/data/b" }',
    ),
}


@pytest.mark.parametrize("plugin", SAME)
def test_what_a_source_says_of_where_it_reads_makes_it_another(
    registry: Registry, plugin: str
) -> None:
    this, same, other = (one(registry, source=text) for text in SAME[plugin])
    assert this.what == same.what and this.what
    assert this.what != other.what


SINKS = {
    "LocalFile": (
        'LocalFile { path = "/data/a" }',
        'LocalFile { path = "/data/a/", file_format_type = json }',
        'LocalFile { path = "/data/b" }',
    ),
    "Delta": (
        'Delta { path = "/data/a" }',
        'Delta { path = "/data/a/", data_save_mode = DROP_DATA }',
        'Delta { path = "/data/b" }',
    ),
    "Jdbc": (
        'Jdbc { url = "jdbc:mysql://h:3306/d", table = t, user = u, password = p }',
        'Jdbc { url = "jdbc:mysql://h/d?user=x&password=secret", table = t, batch_size = 5 }',
        'Jdbc { url = "jdbc:mysql://h/d", table = t2 }',
    ),
    "Iceberg": (
        'Iceberg { iceberg.catalog.config { type = hadoop, warehouse = "/data/w" }, table = t }',
        'Iceberg { iceberg.catalog.config { type = hadoop, warehouse = "file:/data/w/" },'
        " table = t, case_sensitive = true }",
        'Iceberg { iceberg.catalog.config { type = hadoop, warehouse = "/data/w" }, table = u }',
    ),
    "Paimon": (
        'Paimon { warehouse = "/data/w", database = d, table = t }',
        'Paimon { warehouse = "/data/w/", database = d, table = t, data_save_mode = DROP_DATA }',
        'Paimon { warehouse = "/data/w", database = d, table = u }',
    ),
    "Spark": (
        'Spark { format = csv, path = "/data/a" }',
        'Spark { format = csv, path = "/data/a/", mode = overwrite }',
        'Spark { format = csv, path = "/data/b" }',
    ),
}


@pytest.mark.parametrize("plugin", SINKS)
def test_what_a_sink_says_of_where_it_writes_makes_it_another(
    registry: Registry, plugin: str
) -> None:
    this, same, other = (one(registry, sink=text) for text in SINKS[plugin])
    assert this.what == same.what and this.what
    assert this.what != other.what
    assert "secret" not in f"{this}{same}{other}"


def test_a_password_in_an_address_is_not_part_of_it(registry: Registry) -> None:
    sink = 'Iceberg {{ iceberg.catalog.config {{ type = sql, uri = "postgresql://u:{0}@h/d" }} }}'
    first, second = (one(registry, sink=sink.format(p)) for p in ("geheim", "other"))
    assert first == second and "geheim" not in str(first) and "***" in first.shown


def test_what_positions_depend_on_is_no_part_of_who_a_source_is(registry: Registry) -> None:
    text = "FakeSource { row.num = 7, schema { fields { id = int } } }"
    two, four = (one(registry, source=text, env=f"parallelism = {n}") for n in (2, 4))
    assert two.what == four.what and two.basis != four.basis
    files = 'LocalFile { path = "/a", file_format_type = text, parallelism = '
    assert one(registry, source=files + "1 }") == one(registry, source=files + "3 }")
    once = one(registry, source=files + "1 }")
    filtered = one(registry, source=files + '1, filename_extension = ".csv" }')
    assert once.basis != filtered.basis and ("discovery_mode", "once") in once.basis


def test_tables_of_one_source_are_told_apart(registry: Registry) -> None:
    text = """LocalFile {{ tables_configs = [
        {{ path = "/{0}", file_format_type = text, schema {{ table = a }} }},
        {{ path = "/{1}", file_format_type = text, schema {{ table = b }} }} ] }}"""
    first, other = (one(registry, source=text.format(*paths)) for paths in ("ab", "ba"))
    assert dict(first.what) == {"tables_configs[0].path": "/a", "tables_configs[1].path": "/b"}
    assert first.what != other.what and first.basis != other.basis


def test_two_stages_of_one_uid_are_a_mistake(registry: Registry) -> None:
    text = """env { job.mode = BATCH }
source { FakeSource { uid = x, schema { fields { id = int } } } }
sink { Console { uid = x } }"""
    with pytest.raises(JobFileError) as refused:
        found(registry, text)
    assert "job.conf:3:8: sink Console: uid 'x' is taken by source FakeSource on line 2" in str(
        refused.value
    )
    good = found(registry, text.replace("Console { uid = x", "Console { uid = y"))
    assert [one.uid for one in good.values()] == ["x", "y"]


@options
class ForeignOptions:
    where: str = "here"
    pasword: Secret | None = None


class Foreign(Source[ForeignOptions]):
    name = "Foreign"


def test_a_plug_in_that_declares_nothing_is_known_by_all_its_options() -> None:
    module = ModuleType("foreign")
    vars(module)["Foreign"] = Foreign
    registry = Registry.load()
    registry.add(module)
    said = "Foreign { where = there, pasword = hidden, parallelism = 2, plugin_output = x }"
    first, other = (one(registry, source=text) for text in (said, said.replace("there", "yonder")))
    assert dict(first.what) == {"where": "there", "pasword": "******"}
    assert first.what != other.what and first.basis == (("parallelism", "2"),)
    assert "hidden" not in str(first)
