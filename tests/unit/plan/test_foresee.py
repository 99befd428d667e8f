"""What `holdfast plan` finds wrong with Spark, `holdfast check` finds without.

Each connector and transform stands here with a job that is broken in what only its input tells.
"""

import importlib.util
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.errors import UserError
from holdfast.model.job import JobPlan, Role
from holdfast.plan.check import check_job, draft_job
from holdfast.plan.foresee import Foreseen, foresee
from holdfast.plan.load import parse_job
from holdfast.worker.expect import expected_tables, look_at_sinks

PEOPLE = "FakeSource { schema { table = people, fields { id = int, name = string } } }"
KEYED = PEOPLE.replace("string }", "string }, primaryKey { name = k, columnNames = [id] }")
TIMED = PEOPLE.replace("string }", "string, at = time }")
CHANGES = PEOPLE.replace("schema", 'rows = [{ kind = DELETE, fields = [1, "a"] }], schema')
TWO = (
    "FakeSource { tables_configs = ["
    "{ schema { table = people, fields { id = int, name = string } } },"
    " { schema { table = others, fields { id = int, at = time } } }] }"
)


def through(transform: str) -> tuple[str, str, str]:
    """Return a job with this transform between a table of people and a console."""
    return PEOPLE, transform, "Console {}"


def into(sink: str, source: str = PEOPLE) -> tuple[str, str, str]:
    """Return a job that writes a table of people there."""
    return source, "", sink


BROKEN = {
    "source LocalFile": (
        "LocalFile { path = nowhere, file_format_type = parquet }", "", "Console {}",
    ),
    "source LocalFile, text": (
        "LocalFile { path = nowhere, file_format_type = csv, schema { fields { id = int } } }",
        "", "Console {}",
    ),
    "source Spark": ("Spark { format = parquet, path = nowhere }", "", "Console {}"),
    "transform Copy": through("Copy { fields { x = idd } }"),
    "transform DataValidator": through(
        "DataValidator { field_rules = [{ field_name = idd, rule_type = NOT_NULL }] }"
    ),
    "transform DataValidator, bound": through(
        "DataValidator { field_rules = [{ field_name = id, rule_type = RANGE, min_value = low }] }"
    ),
    "transform FieldMapper": through("FieldMapper { field_mapper { idd = x } }"),
    "transform FieldRename": through("FieldRename { replacements_with_regex = ["
        "{ replace_from = id, replace_to = name }] }"),
    "transform Filter": through("Filter { include_fields = [idd] }"),
    "transform Filter, dropping": through("Filter { exclude_fields = [idd] }"),
    "transform Metadata": through("Metadata { metadata_fields { Table = name } }"),
    "transform Python": through('Python { file = "nowhere.py", function = f }'),
    "transform JsonPath": through(
        'JsonPath { columns = [{ src_field = id, path = "$.a", dest_field = a }] }'
    ),
    "transform RegexExtract": through(
        'RegexExtract { source_field = nam, regex_pattern = "(a)", output_fields = [x] }'
    ),
    "transform Replace": through("Replace { replace_field = nam, pattern = a, replacement = b }"),
    "transform RowKindExtractor": through("RowKindExtractor { custom_field_name = name }"),
    "transform Split": through('Split { separator = ",", split_field = nam, output_fields = [x] }'),
    "transform Sql": through('Sql { query = "select try_cast(idd as bigint) as x from people" }'),
    "transform Sql, where": through('Sql { query = "select id from people where idd > 1" }'),
    "transform Sql, of a row": through('Sql { query = "select name.first as x from people" }'),
    "transform Sql, after another": through(
        'Sql { query = "select id + 1 as n, name from people" }'
        ' Sql { query = "select n, id from dual" }'
    ),
    "transform Sql, changes": (
        CHANGES, 'Sql { query = "select count(*) as n from people" }', "Console {}",
    ),
    "transform Sql, nested": through(
        'Sql { query = "select upper(concat(name, trim(nam))) as x from people" }'
    ),
    "transform Sql, cast": through('Sql { query = "select cast(idd as string) as x from people" }'),
    "transform Sql, case": through(
        "Sql { query = \"select case when idd > 1 then 'a' else name end as x from people\" }"
    ),
    "transform JsonPath, column": through(
        'JsonPath { columns = [{ src_field = nam, path = "$.a", dest_field = a }] }'
    ),
    "transform Filter, one of several tables": (TWO,
        "Filter { table_transform = [{ table_path = others, include_fields = [idd] }] }",
        "Console {}"),
    "transform TableMerge": (TWO, "TableMerge { table = all }", "Console {}"),
    "transform TableRename": (TWO.replace("others", "People"),
        "TableRename { convert_case = LOWER }", "Console {}"),
    "transform FilterRowKind": (CHANGES, "FilterRowKind { include_kinds = [DELETE] }",
        'Delta { path = "t" }'),
    "sink Assert": into(
        "Assert { rules { field_rules = [{ field_name = idd, field_type = int }] } }"
    ),
    "sink Assert, table": into(
        "Assert { rules { catalog_table_rule { column_rule = [{ name = idd, type = int }] } } }"
    ),
    "sink Console": (PEOPLE.replace("{", "{ plugin_output = a,", 1),
        "Filter { plugin_input = a, plugin_output = b, include_fields = [id] }"
        " Copy { plugin_input = a, plugin_output = c, fields { x = id } }",
        "Console { plugin_input = [b, c] }"),
    "sink Delta": into('Delta { path = "t", partition_keys = [day] }'),
    "sink Delta, changes": into('Delta { path = "t" }', CHANGES),
    "sink Delta, types": into('Delta { path = "t" }', TIMED),
    "sink Iceberg": into('Iceberg { iceberg.catalog.config { type = hadoop, warehouse = "w" },'
        ' namespace = n, table = t, iceberg.table.partition-keys = day }'),
    "sink Iceberg, keys": into('Iceberg { iceberg.catalog.config { type = hadoop,'
        ' warehouse = "w" }, namespace = n, table = t, iceberg.table.primary-keys = idd }'),
    "sink Iceberg, changes": into('Iceberg { iceberg.catalog.config { type = hadoop,'
        ' warehouse = "w" }, namespace = n, table = t }', CHANGES),
    "sink InMemory": into("InMemory { assert_options_key = \"${table_name}\","
        " assert_options_value = others }"),
    "sink LocalFile": into('LocalFile { path = "out", file_format_type = csv,'
        " have_partition = true, partition_by = [day] }"),
    "sink LocalFile, columns": into('LocalFile { path = "out", file_format_type = csv,'
        " sink_columns = [idd] }"),
    "sink Paimon": into('Paimon { warehouse = "w", database = d, table = t,'
        ' paimon.table.partition-keys = "day" }'),
    "sink Paimon, keys": into('Paimon { warehouse = "w", database = d, table = t,'
        " paimon.table.primary-keys = idd, paimon.table.write-props { bucket = 1,"
        " sequence.field = id } }"),
    "sink Paimon, changes": into('Paimon { warehouse = "w", database = d, table = t }', CHANGES),
    "sink Spark": into('Spark { format = parquet, path = "out", partition_by = [day] }'),
}  # fmt: skip
"""Jobs of which `holdfast plan` says what is wrong."""

BETTER_SAID = {
    "transform Sql, group": through(
        'Sql { query = "select name, count(idd) as n from people group by name" }'
    ),
    "transform Sql, order": through('Sql { query = "select id from people order by idd" }'),
}
"""Jobs of which Spark says what is wrong, and a check says it in better words."""

SERVER = (
    'Jdbc { url = "jdbc:postgresql://127.0.0.1:1/shop", user = u, password = p, database = shop'
)
BEFORE_CONNECTING = {
    "sink Jdbc": into(SERVER + ", database = shop, table = t, primary_keys = [idd] }"),
    "sink Jdbc, query": into(
        SERVER + ', database = shop, query = "insert into t values (?, ?, ?)" }'
    ),
    "sink Jdbc, changes": into(SERVER + ", database = shop, table = t }", CHANGES),
}
"""Jobs that `plan` could look at with a server alone."""

NOTHING_TO_BREAK = {"source FakeSource"}
"""What knows all it needs from its own options, which the check of the file reads."""


@cache
def registry() -> Registry:
    return Registry.load()


def job_of(parts: tuple[str, str, str]) -> JobPlan:
    """Return the checked job; nothing is wrong with its file."""
    source, transform, sink = parts
    text = f"env {{ job.mode = BATCH }}\nsource {{ {source} }}\n"
    text += f"transform {{ {transform} }}\nsink {{ {sink} }}\n"
    report = CheckReport()
    tree = parse_job(text, "job.conf", {}, None, report)
    assert tree, report.mistakes
    job = check_job(tree, "job.conf", registry(), report, allow_python=True)
    assert job, report.mistakes
    return job


def foreseen(job: JobPlan) -> tuple[Foreseen, list[str]]:
    """Return what is foreseen of a job, and its mistakes."""
    report = CheckReport()
    seen = foresee(job, registry(), report, allow_python=True)
    return seen, [m.message for m in report.mistakes]


@pytest.mark.parametrize("name", BROKEN)
def test_what_plan_finds_wrong_is_what_check_finds_wrong(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = job_of(BROKEN[name])
    with pytest.raises(UserError) as planned:
        tables = expected_tables(job, registry(), spark, allow_python=True)
        for _, error in look_at_sinks(job, registry(), tables):
            raise error
    _, mistakes = foreseen(job)
    assert isinstance(planned.value, UserError)
    for sentence in planned.value.sentences:
        # A check tells the stage by its line, which stands before all it says.
        said = re.sub(r"^\S+ \(job\.conf:\d+:\d+\): ", "", " ".join(sentence.split()))
        assert [m for m in mistakes if said in m], (said, mistakes)
    assert not list(tmp_path.iterdir()), "a check makes nothing"


@pytest.mark.parametrize("name", BETTER_SAID)
def test_what_only_spark_finds_in_a_run_is_found_by_a_check(name: str, spark: SparkSession) -> None:
    job = job_of(BETTER_SAID[name])
    with pytest.raises(UserError, match="idd"):
        expected_tables(job, registry(), spark)
    _, (said,) = foreseen(job)
    assert said == "Sql: there is no column 'idd'. Did you mean 'id'? Columns: id, name."


@pytest.mark.parametrize("name", BEFORE_CONNECTING)
def test_check_finds_what_no_server_is_needed_for(name: str) -> None:
    _, mistakes = foreseen(job_of(BEFORE_CONNECTING[name]))
    assert len(mistakes) == 1
    assert mistakes[0].startswith("Jdbc: ")


def test_every_connector_and_transform_has_a_broken_job() -> None:
    have = {name.partition(",")[0] for name in (*BROKEN, *BEFORE_CONNECTING)} | NOTHING_TO_BREAK
    want = {
        f"{role} {kind.name}"
        for role in Role
        for name in registry().names(role)
        if (kind := registry().find(role, name)) and not kind.refused
    }
    assert have == want


def test_all_mistakes_are_told_at_once() -> None:
    source = PEOPLE.replace("FakeSource {", "FakeSource { plugin_output = a,")
    transforms = "Copy { plugin_input = a, plugin_output = b, fields { x = idd } }"
    transforms += " Filter { plugin_input = a, plugin_output = c, include_fields = [nam] }"
    sinks = "Console { plugin_input = b } Console { plugin_input = c }"
    sinks += ' Delta { plugin_input = a, path = "t", partition_keys = [day] }'
    _, mistakes = foreseen(job_of((source, transforms, sinks)))
    assert len(mistakes) == 3


@pytest.mark.parametrize(
    ("transform", "names"),
    [
        ('Sql { query = "select try_cast(idd as int) as x, upper(nam) as n from people'
         ' where abs(idx) > 1" }', ("idd", "nam", "idx")),
        ('Sql { query = "select nam, count(*) as n from people group by nam order by idx" }',
         ("nam", "idx")),
        ("Filter { include_fields = [idd, nam] }", ("idd", "nam")),
        ("Filter { exclude_fields = [idd, nam] }", ("idd", "nam")),
        ("Copy { fields { x = idd, y = nam } }", ("idd", "nam")),
        ("FieldMapper { field_mapper { idd = x, nam = y } }", ("idd", "nam")),
        ("DataValidator { field_rules = [{ field_name = idd, rule_type = NOT_NULL },"
         " { field_name = nam, rule_type = NOT_NULL }] }", ("idd", "nam")),
    ],
)  # fmt: skip
def test_every_column_that_is_not_there_is_told_at_once(
    transform: str, names: tuple[str, ...]
) -> None:
    _, mistakes = foreseen(job_of(through(transform)))
    assert sorted(re.findall(r"no column '(\w+)'", " ".join(mistakes))) == sorted(names)
    assert len(mistakes) == len(names)


def test_a_mistake_in_an_option_hides_none_that_only_the_columns_tell() -> None:
    text = """
    env { job.mode = BATCH, job.nam = x }
    source { FakeSource { plugin_output = p, schema { fields { id = int } } }
      LocalFile { plugin_output = o, path = nowhere, file_format_typ = csv } }
    transform { Filter { plugin_input = p, plugin_output = q, include_fields = [idd] }
      Sql { plugin_input = o, plugin_output = r,
        query = "select abs(a, 3) as x, pi(b) as y from o" } }
    sink { Console { plugin_input = [q, r] } Kafka { plugin_input = p }
      Delta { path = t, partition_keys = [day, week], plugin_input = p } }
    """
    report = CheckReport()
    tree = parse_job(text, "job.conf", {}, None, report)
    assert tree
    draft = draft_job(tree, "job.conf", registry(), report)
    assert draft.job
    assert draft.broken == {"Source[1]-LocalFile", "Transform[1]-Sql", "Sink[1]-Kafka"}
    foresee(draft.job, registry(), report, broken=draft.broken)
    found = "\n".join(m.message for m in sorted(report.mistakes))
    told = ("'job.nam'", "'file_format_typ'", "no column 'idd'", "abs at line 1", "pi at line 1",
            "sink Kafka", "day or week")  # fmt: skip
    assert [t for t in told if t not in found] == [], found
    assert len(report.mistakes) == len(told), found


def test_stages_that_wait_for_each_other_leave_nothing_to_foresee() -> None:
    text = """
    source { FakeSource { plugin_output = p, schema { fields { id = int } } } }
    transform { Copy { plugin_input = b, plugin_output = a, fields { x = id } }
      Copy { plugin_input = a, plugin_output = b, fields { x = id } } }
    sink { Console { plugin_input = p } Console { plugin_input = a } }
    """
    report = CheckReport()
    tree = parse_job(text, "job.conf", {}, None, report)
    assert tree
    assert draft_job(tree, "job.conf", registry(), report).job is None
    assert "waits for itself" in report.mistakes[0].message


MISSING = {
    "deltalake": ('Delta { path = "t" }', "holdfast[delta]"),
    "pyiceberg": ('Iceberg { iceberg.catalog.config { type = hadoop, warehouse = "w" } }',
                  "holdfast[iceberg]"),
    "boto3": ("Iceberg { iceberg.catalog.config { type = glue } }", "pyiceberg[glue]"),
    "thrift": ('Iceberg { iceberg.catalog.config { type = hive, uri = "thrift://h:1" } }',
               "pyiceberg[hive]"),
    "fastavro": ('Paimon { warehouse = "w", database = d, table = t }', "holdfast[paimon]"),
    "psycopg": (SERVER + ", table = t }", "holdfast[postgres]"),
    "pgpq": (SERVER + ", table = t }", "holdfast[postgres]"),
    "pymysql": (SERVER.replace("postgresql", "mysql") + ", table = t }", "holdfast[mysql]"),
}  # fmt: skip
"""Libraries that come with an extra, a sink that needs each, and what brings it."""


@pytest.mark.parametrize("library", MISSING)
def test_a_library_that_is_not_installed_is_found_by_a_plain_check(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, extra = MISSING[library]
    job = job_of(into(sink))
    whole = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> Any:
        return None if name == library else whole(name, package) or object()

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    _, (said,) = foreseen(job)
    assert f"needs the library {library}, which is not installed" in said
    assert f"pip install '{extra}'" in said


def test_every_extra_of_a_connector_is_in_the_list_above() -> None:
    """An extra that a new connector brings must be found missing by a plain check."""
    extras = tomllib.loads(Path("pyproject.toml").read_text())["project"]["optional-dependencies"]
    found = {extra for _, extra in MISSING.values()}
    assert {f"holdfast[{extra}]" for extra in extras} - found == {"holdfast[all]", "holdfast[etcd]"}


SOUND = {
    "join": ("select p.id, count(*) as n, max(q.name) as m from a p join a q on p.id = q.id"
             " group by p.id having count(*) > 1 order by n", ["id", "n", "m"]),
    "with": ("with w as (select id as k from a) select k, k + 1 as l from w", ["k", "l"]),
    "inner": ("select s.k from (select id as k from a) s where s.k in (select id from a)", ["k"]),
    "window": ("select id, row_number() over (partition by name order by id) as r from a",
               ["id", "r"]),
    "star": ("select * from a order by ID", ["id", "name"]),
    "union": ("select id from a union all select id from a", ["id"]),
    "row": ("select name, concat(name, 'x') as y from a where id > 1", ["name", "y"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_query_is_not_refused_and_its_columns_are_known(
    name: str, spark: SparkSession
) -> None:
    query, columns = SOUND[name]
    if columns is None:
        query = query.replace(", *", "")
        columns = ["name", "y"]
    source = PEOPLE.replace("FakeSource {", "FakeSource { plugin_output = a,")
    job = job_of((source, f'Sql {{ plugin_input = a, query = "{query}" }}', "Console {}"))
    seen, mistakes = foreseen(job)
    assert not mistakes
    (table,) = seen.tables["Transform[0]-Sql"] or ()
    assert list(table.names) == columns
    (planned,) = expected_tables(job, registry(), spark)["Transform[0]-Sql"]
    assert planned.names == table.names


def test_sources_that_share_a_name_are_one_input_of_a_join() -> None:
    names = ("a", "a", "b")
    sources = [PEOPLE.replace("{", f"{{ plugin_output = {name},", 1) for name in names]
    query = "select p.id from a p join b o on p.id = o.id"
    sql = f'Sql {{ plugin_input = [a, b], plugin_output = c, query = "{query}" }}'
    seen, mistakes = foreseen(job_of((" ".join(sources), sql, "Console { plugin_input = c }")))
    assert not mistakes
    (table,) = seen.tables["Transform[0]-Sql"] or ()
    assert table.names == ("id",)


def test_what_only_spark_can_tell_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").touch()
    source = f'Spark {{ format = parquet, path = "{tmp_path}" }}'
    job = job_of((source, "Filter { include_fields = [idd] }", "Console {}"))
    seen, mistakes = foreseen(job)
    assert not mistakes
    assert seen.unknown(job) == ["Source[0]-Spark"]
