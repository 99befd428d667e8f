"""What a worker may not say: each of these is refused by every sink, and nothing is touched."""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import CommitEvent, CommitId, Committable, Sink
from holdfast.connectors.delta.options import DeltaSinkOptions
from holdfast.connectors.files.sink_options import DataSaveMode as FileMode
from holdfast.connectors.files.sink_options import LocalFileSinkOptions
from holdfast.connectors.files.writer import LocalFileSink
from holdfast.connectors.iceberg.writer import IcebergSink
from holdfast.connectors.jdbc.writer import JdbcSink
from holdfast.connectors.lake.prepare import DataSaveMode
from holdfast.connectors.paimon.options import PaimonSinkOptions
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.connectors.spark import SparkSink
from holdfast.errors import UserError
from holdfast.model.job import Mode
from tests.unit.connectors.delta.test_delta_sink import sink as delta_sink
from tests.unit.connectors.iceberg.test_iceberg_commit import ROWS, World
from tests.unit.connectors.paimon.paimon_tables import folder as paimon_folder
from tests.unit.connectors.paimon.paimon_tables import sink as paimon_sink
from tests.unit.connectors.paimon.test_paimon_commit import TABLE as PAIMON_TABLE
from tests.unit.connectors.paimon.test_paimon_commit import staged as paimon_staged

Make = Callable[..., Any]
Change = Callable[[dict[str, Any]], None]

LIFE, OTHER = "7.i1", "7.i2"
USER = f"{LIFE}.1.Sink[0]-x"
TRY = f"{LIFE}-t-a1-s1-t0"


@dataclass
class Scene:
    """A sink, and what it would take: rows that were staged, and its save mode."""

    sink: Sink[Any]
    good: Committable
    order: Committable
    hidden: str
    at: str
    """The key of the place in staged rows."""

    order_at: str

    def files(self, content: dict[str, Any], key: str, value: Any) -> None:
        """Change the first file's place: `staged` or `final`."""
        first = content["files"][0]
        if isinstance(first, dict):
            first[key] = value
        elif isinstance(first, list):
            first[key == "final"] = value
        elif key == "final":
            content["files"][0] = value
        else:
            content["staged"] = value


def stored(version: int, table: str, content: Any, opening: bool = False) -> Committable:
    return Committable(version, table, 1, 1, json.loads(json.dumps(content)), opening)


def put(root: Path, name: str) -> None:
    (root / name).mkdir(parents=True)
    (root / name / "part-0").write_text("rows")


def local(make: Make, tmp: Path) -> Scene:
    root = tmp / "lake" / "t"
    put(root, f".holdfast/{TRY}")
    sink = make(
        LocalFileSink,
        {"path": f"{tmp}/lake/${{table_name}}", "file_format_type": "text",
         "data_save_mode": "DROP_DATA"},
    )  # fmt: skip
    folder = f".holdfast/{TRY}"
    content = {"root": str(root), "folder": folder, "replace": False,
               "files": [[f"{folder}/part-0", "a=1/b.txt"]]}  # fmt: skip
    order = {"root": str(root), "life": LIFE, "mode": "clear"}
    return Scene(sink, stored(1, "t", content), stored(1, "t", order, True), ".holdfast", "root",
                 "root")  # fmt: skip


def spark(make: Make, tmp: Path) -> Scene:
    root, name = tmp / "lake" / "t", f".holdfast-{LIFE}-t-a1-s1-t"
    put(root, name)
    path = f"{tmp}/lake/${{table_name}}"
    sink = make(SparkSink, {"path": path, "format": "json", "mode": "overwrite"})
    content = {"staged": f"{root}/{name}", "folder": str(root), "life": LIFE, "files": ["part-0"]}
    order = {"root": str(root), "life": LIFE, "mode": "clear"}
    return Scene(sink, stored(1, "t", content), stored(1, "t", order, True), ".holdfast", "folder",
                 "root")  # fmt: skip


def delta(make: Make, tmp: Path) -> Scene:
    root, folder = tmp / "lake" / "t", f"_holdfast/{TRY}"
    put(root, folder)
    sink = delta_sink(tmp / "lake" / "${table_name}", data_save_mode=DataSaveMode.DROP_DATA)
    file = {"staged": f"{folder}/part-0", "final": "part-0", "bytes": 1, "rows": 1,
            "partition": {}, "stats": "{}"}  # fmt: skip
    content = {"url": str(root), "folder": folder, "columns": "{}", "partitions": [],
               "files": [file]}  # fmt: skip
    order = {"where": str(root), "life": LIFE, "mode": "clear", "shape": None}
    return Scene(sink, stored(1, "t", content), stored(1, "t", order, True), "_holdfast", "url",
                 "where")  # fmt: skip


def iceberg(make: Make, tmp: Path) -> Scene:
    world = World(tmp, {"type": "hadoop", "warehouse": (tmp / "lake").as_uri()})
    world.sink().prepare([ROWS])
    good = world.stage()
    sink = world.sink(table="${table_name}", data_save_mode=DataSaveMode.DROP_DATA)
    where = "\n".join(("db", "rows", f"file://{tmp}/lake/db/rows"))
    order = {"where": where, "life": LIFE, "mode": "clear", "shape": None}
    return Scene(sink, good, stored(1, "t", order, True), "_holdfast", "location", "where")


def paimon(make: Make, tmp: Path) -> Scene:
    paimon_sink(tmp / "lake").prepare([PAIMON_TABLE])
    (good,) = paimon_staged(tmp / "lake", 1)
    made = PaimonSinkOptions(
        warehouse=str(tmp / "lake"), database="${database_name}", table="${table_name}",
        data_save_mode=DataSaveMode.DROP_DATA,
    )  # fmt: skip
    sink = PaimonSink(made, PluginContext("7", "job", "Sink[0]-Paimon", Mode.STREAMING))
    where = str(paimon_folder(tmp / "lake"))
    order = {"where": where, "life": LIFE, "mode": "clear", "shape": None}
    return Scene(sink, good, stored(1, "t", order, True), "_holdfast", "url", "where")


SCENES = {"LocalFile": local, "Spark": spark, "Delta": delta, "Iceberg": iceberg, "Paimon": paimon}

FINALS = (
    "../b", "a/../../b", "..", "/etc/b", "", "a//b", "./b", "a/./b", "a/", "a\0b", ".holdfast/x",
    "_holdfast/x", "a/.holdfast/x", "_delta_log/00000000000000000001.json", ".holdfast-x/b",
    "C:\\b", "c:/b", "file:/b", "s3://b/c", "x" * 300, "a/" * 3000 + "b", "\ud800",
)  # fmt: skip
STAGED = ("../x", "/etc/passwd", "{folder}", "{folder}/", "{folder}/../../x", "{folder}/a//b",
          "{folder}x/part-0", "other/part-0", "{hidden}/commits/x", "", "{folder}/\0")  # fmt: skip
FOLDERS = (
    "", ".", "..", "/tmp", "{hidden}", "{hidden}/", "{hidden}/commits", "{hidden}/opened",
    "{hidden}/../x", "{hidden}/{try}/..", f"{{hidden}}/{OTHER}-t-a1-s1-t0",
    "{hidden}/8.i1-t-a1-s1-t0", f"{{hidden}}/{LIFE}-t-a1-s1", f"{{hidden}}/{LIFE}-a1-s1-t0",
    f"{{hidden}}/{LIFE}-t-a1-s1-t0\n", f"{{hidden}}/{LIFE}-{'t' * 300}-a1-s1-t0", "{root}",
)  # fmt: skip
PLACES = (
    "/", "", ".", "{outside}", "{root}/../../outside", "{root}/", "{root}/a", "{root}\0",
    "{above}", "{above}/", "{above}/..", "{above}/.", "{above}/.holdfast", "{above}/_delta_log",
    "s3://bucket/x", "file://{outside}", "lake/t", "x" * 5000,
)  # fmt: skip
WRONG: tuple[Any, ...] = (None, 7, "x", [], {}, [[]], {"a": 1}, True, 1e308, 2**70)


def _set(key: str, value: Any) -> Change:
    def change(content: dict[str, Any]) -> None:
        content[key] = value

    return change


def _drop(key: str) -> Change:
    def change(content: dict[str, Any]) -> None:
        del content[key]

    return change


def staged_lies(scene: Scene, tmp: Path) -> Iterator[tuple[str, Change]]:
    """Yield what each lie about staged rows is called, and how it is told."""
    content: Any = scene.good.content
    root = str(content[scene.at]).removeprefix("file://")
    folder = str(content.get("folder", "")) if scene.at != "folder" else ""
    facts = {"root": root, "above": str(Path(root).parent), "outside": str(tmp / "outside"),
             "hidden": scene.hidden, "folder": folder, "try": TRY}  # fmt: skip
    for text in FINALS:
        yield f"final {text[:20]!r}", lambda c, t=text: scene.files(c, "final", t)
    for text in STAGED if folder else ("/etc", "{root}", "{root}/.holdfast", "{outside}/x"):
        said = text.format(**facts)
        yield f"staged {text!r}", lambda c, t=said: scene.files(c, "staged", t)
    for text in FOLDERS if folder else ():
        yield f"folder {text[:60]!r}", _set("folder", text.format(**facts))
    for text in PLACES:
        yield f"place {text[:60]!r}", _set(scene.at, text.format(**facts))
    for key in content:
        if key not in ("replace", "life", "partitions"):
            yield f"no {key}", _drop(key)
        for wrong in WRONG:
            if type(wrong) is not type(content[key]) or wrong == [[]]:
                yield f"{key} is {str(wrong)[:10]}", _set(key, wrong)


@pytest.fixture(params=SCENES)
def scene(request: pytest.FixtureRequest, make: Make, tmp_path: Path) -> Scene:
    (tmp_path / "outside" / "x").mkdir(parents=True)
    (tmp_path / "outside" / "victim").write_text("a stranger's")
    made = SCENES[request.param](make, tmp_path)
    Path(tmp_path / "lake" / "stranger").write_text("there before")
    return made


def tree(folder: Path) -> dict[str, str]:
    """Return all there is below a folder."""
    return {
        str(p.relative_to(folder)): p.read_bytes().hex() if p.is_file() else "folder"
        for p in folder.rglob("*")
    }


def refused(sink: Sink[Any], lie: Committable, *, late: bool = False) -> None:
    """Fail unless everything that follows names refuses this one, in words.

    `late`: only the commit may know, as it must ask the catalog.
    """
    calls: list[Callable[[], object]] = [
        lambda: sink.commit(CommitId(USER, 1), [lie]),
        lambda: sink.admit([lie], LIFE),
    ]
    for call in calls[:1] if late else calls:
        with pytest.raises(UserError) as error:
            call()
        said = str(error.value)
        assert error.value.code.startswith("sink.committable_"), said
        assert sink.name in said and sink.context.job_id in said and len(said) < 1200


def test_lies_about_staged_rows(scene: Scene, tmp_path: Path) -> None:
    scene.sink.admit([scene.good], LIFE)
    before, count = tree(tmp_path), 0
    for name, change in staged_lies(scene, tmp_path):
        content: Any = deepcopy(scene.good.content)
        change(content)
        try:
            late = scene.sink.name == "Iceberg" and name.startswith(("place", "location"))
            refused(scene.sink, replace(scene.good, content=content), late=late)
        except BaseException as error:
            error.add_note(f"the lie: {name}")
            raise
        count += 1
    assert count >= 60 and tree(tmp_path) == before
    for wrong in WRONG:
        if wrong is not None or scene.sink.name != "Spark":
            refused(scene.sink, replace(scene.good, content=wrong))
    refused(scene.sink, replace(scene.good, version=2))
    refused(scene.sink, replace(scene.good, rows=2**63))
    assert tree(tmp_path) == before


def test_what_is_aborted_or_listened_to_is_looked_at_as_well(scene: Scene, tmp_path: Path) -> None:
    before = tree(tmp_path)
    for name, change in staged_lies(scene, tmp_path):
        if OTHER in name or "8.i1" in name:
            continue  # a worker may abort whatever has the name of a try
        content: Any = deepcopy(scene.good.content)
        change(content)
        lie = replace(scene.good, content=content)
        with pytest.raises(UserError, match="refuses"):
            scene.sink.abort([scene.good, lie])
            pytest.fail(f"the lie: {name}")
    assert tree(tmp_path) == before
    content = deepcopy(scene.good.content)
    assert isinstance(content, dict)
    content[scene.at] = str(tmp_path / "outside")
    event = CommitEvent(CommitId(USER, 1), (replace(scene.good, content=content),))
    if scene.sink.name in ("LocalFile", "Delta"):
        with pytest.raises(UserError, match="refuses"):
            scene.sink.listen(event, None)


def test_lies_about_save_modes(scene: Scene, tmp_path: Path) -> None:
    scene.sink.admit([scene.order], LIFE)
    content: Any = scene.order.content
    root = content[scene.order_at].rpartition("\n")[2].removeprefix("file://")
    facts = {"root": root, "above": str(Path(root).parent), "outside": str(tmp_path / "outside")}
    start = content[scene.order_at].rpartition("\n")[0]
    lies: list[dict[str, Any]] = [
        {scene.order_at: f"{start}\n{place}" if start and whole else place}
        for place in (text.format(**facts) for text in PLACES)
        for whole in (True, False)
    ]
    lies += [{"life": life} for life in (OTHER, "", "7", "..", 7, None)]
    lies += [{"mode": mode} for mode in ("empty", "anew", "ignore", "script", "", 1, None)]
    lies += [{"mode": "anew", "shape": shape} for shape in ({}, "x", {"schema": 1}, [])]
    if "where" in content:
        lies += [{"shape": {"properties": {}}}]
    before = tree(tmp_path)
    for lie in lies:
        try:
            late = "\n" in str(lie.get("where", ""))
            refused(scene.sink, replace(scene.order, content={**content, **lie}), late=late)
        except BaseException as error:
            error.add_note(f"the lie: {lie}")
            raise
    for wrong in WRONG:
        refused(scene.sink, replace(scene.order, content=wrong))
    assert len(lies) >= 25 and tree(tmp_path) == before


@pytest.mark.parametrize("kind", ["LocalFile", "Delta"])
def test_no_save_mode_but_the_job_files(kind: str, make: Make, tmp_path: Path) -> None:
    one = SCENES[kind](make, tmp_path)
    options = one.sink.options
    assert isinstance(options, LocalFileSinkOptions | DeltaSinkOptions)
    append: Any = FileMode.APPEND_DATA if kind == "LocalFile" else DataSaveMode.APPEND_DATA
    adding = type(one.sink)(replace(options, data_save_mode=append), one.sink.context)
    refused(adding, one.order)


def test_iceberg_names_of_other_tables(make: Make, tmp_path: Path) -> None:
    one = iceberg(make, tmp_path)
    assert isinstance(one.sink, IcebergSink) and isinstance(one.good.content, dict)
    for name in ([], ["rows"], ["other", "rows"], ["db", ".."], ["db", "a/b"], ["db", ""],
                 ["db", "rows\nx"], ["", "rows"], ["..", "db", "rows"],
                 ["db", "x", "rows"]):  # fmt: skip
        refused(one.sink, replace(one.good, content={**one.good.content, "table": name}))
    metadata = deepcopy(one.good.content)
    one.files(metadata, "final", "metadata/v9.metadata.json")
    refused(one.sink, replace(one.good, content=metadata))


def test_paimon_files_are_where_readers_look(make: Make, tmp_path: Path) -> None:
    one = paimon(make, tmp_path)
    assert isinstance(one.sink, PaimonSink)
    before = tree(tmp_path)
    for final in ("schema/schema-9", "snapshot/snapshot-9", "manifest/x", "bucket-1/{}", "{}",
                  "x/bucket-0/{}", "bucket-0/other.parquet", "bucket-0/x/{}"):  # fmt: skip
        content: Any = deepcopy(one.good.content)
        name = content["files"][0]["final"].rpartition("/")[2]
        one.files(content, "final", final.format(name))
        refused(one.sink, replace(one.good, content=content))
    for key, wrong in (("_FILE_NAME", "../x"), ("_EXTRA_FILES", ["../x"]), ("_ROW_COUNT", 2**70),
                       ("_EXTERNAL_PATH", "/etc"), ("_MIN_KEY", 1), ("_LEVEL", "x"),
                       ("_X", 1)):  # fmt: skip
        content = deepcopy(one.good.content)
        content["files"][0]["meta"][key] = wrong
        refused(one.sink, replace(one.good, content=content))
    content = deepcopy(one.good.content)
    name = content["files"][0]["final"].rpartition("/")[2]
    one.files(content, "final", f"id=9/bucket-0/{name}")
    with pytest.raises(UserError, match="not in the folder of its partition"):
        one.sink.commit(CommitId(USER, 1), [replace(one.good, content=content)])
    assert tree(tmp_path) == before
    one.sink.commit(CommitId(USER, 1), [one.good])


STAGE = "holdfast_stage_" + "a1" * 16
JDBC = {"url": "jdbc:postgresql://127.0.0.1:9/shop", "user": "u", "password": "p",
        "table": "public.${table_name}"}  # fmt: skip
ROWS_OF_JDBC: dict[str, Any] = {
    "staged": STAGE, "chunks": [1, 2], "table": ["public", "t"], "columns": ["id", "v"],
    "keys": ["id"], "deletes": True, "query": "", "width": 2, "apart": False,
}  # fmt: skip


def jdbc(make: Make, **more: Any) -> JdbcSink:
    made = make(JdbcSink, {**JDBC, **more})
    assert isinstance(made, JdbcSink)
    return made


@pytest.mark.parametrize(
    "lie",
    [
        *({"staged": name} for name in ("orders", "", f"{STAGE}; DROP TABLE x", STAGE.upper(),
          f"{STAGE}_1", f"public.{STAGE}", f'"{STAGE}"', f"{STAGE}\n", "holdfast_commit", 7, None)),
        *({"chunks": chunks} for chunks in ([-1], ["1"], [1.5], [2**64], None, "1", [[1]])),
        *({"table": table} for table in (["public", "other"], ["pg_catalog", "t"], ["t"], [],
          ["a", "public", "t"], "t", None, ["public", "t", "x"], ["public", 't"; DROP TABLE x'])),
        *({"query": q} for q in ("INSERT INTO t VALUES (?, ?)", "DROP TABLE x", "x", 7)),
        {"width": 1}, {"width": -1}, {"width": 3}, {"columns": ["id"]}, {"keys": ["nowhere"]},
        {"columns": None}, {"columns": [1, 2]}, {"keys": "id"}, {"deletes": "yes"}, {"apart": 1},
    ],
    ids=str,
)  # fmt: skip
def test_jdbc_refuses_foreign_tables(make: Make, lie: dict[str, Any]) -> None:
    good = stored(1, "t", ROWS_OF_JDBC)
    sink = jdbc(make)
    sink.admit([good], LIFE)
    refused(sink, stored(1, "t", {**ROWS_OF_JDBC, **lie}))


def test_jdbc_refuses_what_is_no_committable(make: Make) -> None:
    for wrong in WRONG:
        refused(jdbc(make), stored(1, "t", wrong))
    for key in ("staged", "chunks", "table", "columns"):
        less = {k: v for k, v in ROWS_OF_JDBC.items() if k != key}
        refused(jdbc(make), stored(1, "t", less))


def test_jdbc_runs_only_the_query_of_the_job_file(make: Make) -> None:
    query = 'INSERT INTO "${table_name}" (id, v) VALUES (?, ?) ON CONFLICT DO NOTHING'
    sink, filled = jdbc(make, query=query, table="x"), query.replace("${table_name}", "t")
    content = {**ROWS_OF_JDBC, "table": ["t"], "keys": [], "deletes": False, "query": filled}
    sink.admit([stored(1, "t", content)], LIFE)
    for other in (
        "INSERT INTO t (id, v) VALUES (?, ?)", "", filled.replace('"t"', '"u"'),
        filled + "; DROP TABLE x", filled + " ", "DELETE FROM t",
    ):  # fmt: skip
        refused(sink, stored(1, "t", {**content, "query": other}))
    name = 't" (id, v) SELECT 1, 2; DROP TABLE x; INSERT INTO "'
    injected = {**content, "query": query.replace("${table_name}", name)}
    refused(sink, stored(1, name, injected))


CREATE = 'CREATE TABLE "public"."t" ("id" bigint NOT NULL, "v" varchar(9), PRIMARY KEY ("id"))'


def order_of_jdbc(mode: str, *statements: str, **more: Any) -> Committable:
    content = {"table": ["public", "t"], "life": LIFE, "mode": mode, "statements": statements}
    return stored(1, "t", {**content, **more}, True)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE x", "", f"{CREATE}; DROP TABLE x", CREATE.replace("public", "other"),
        CREATE.replace("bigint", "bigint DEFAULT f()"), f"{CREATE} AS SELECT 1",
        CREATE.replace("bigint", "bigint CHECK (f(1))"), CREATE.replace('"v"', "v"),
        CREATE.replace("bigint", "bigint REFERENCES x"), 'CREATE TABLE "public"."t" AS SELECT 1',
        CREATE.replace("varchar(9)", "text); DROP TABLE x; CREATE TABLE y (z text"),
        CREATE.replace("NOT NULL", "/* */"), CREATE.replace("NOT NULL", "-- "), f" {CREATE}",
    ],
)  # fmt: skip
def test_jdbc_makes_only_the_table(make: Make, statement: str) -> None:
    sink = jdbc(make, schema_save_mode="RECREATE_SCHEMA")
    sink.admit([order_of_jdbc("anew", CREATE)], LIFE)
    refused(sink, order_of_jdbc("anew", statement))
    refused(sink, order_of_jdbc("anew", CREATE, statement or "SELECT 1"))


def test_jdbc_save_modes_are_those_of_the_job_file(make: Make) -> None:
    clear = jdbc(make, data_save_mode="DROP_DATA")
    clear.admit([order_of_jdbc("clear")], LIFE)
    script = "DELETE FROM ${table_name} WHERE x = 1"
    runs = jdbc(make, data_save_mode="CUSTOM_PROCESSING", custom_sql=script)
    runs.admit([order_of_jdbc("script", script.replace("${table_name}", "t"))], LIFE)
    for sink, order in (
        (jdbc(make), order_of_jdbc("clear")), (clear, order_of_jdbc("empty")),
        (clear, order_of_jdbc("clear", "DROP TABLE x")), (clear, order_of_jdbc("anew", CREATE)),
        (clear, order_of_jdbc("clear", table=["other", "t"])), (clear, order_of_jdbc("drop")),
        (clear, order_of_jdbc("clear", life=OTHER)), (clear, order_of_jdbc("clear", life="")),
        (runs, order_of_jdbc("script")), (runs, order_of_jdbc("script", "DROP TABLE t")),
        (runs, order_of_jdbc("script", script.replace("${table_name}", "u"))),
        (runs, order_of_jdbc("script", script.replace("${table_name}", "t"), "DROP TABLE t")),
    ):  # fmt: skip
        refused(sink, order)
    for wrong in WRONG:
        refused(clear, replace(order_of_jdbc("clear"), content=wrong))
