"""Commits to Iceberg tables, without Spark: files are written by Arrow."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType

from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import CommitEvent, CommitId, Committable, Leftovers
from holdfast.connectors.iceberg import hadoop_catalog
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.staged_files import VERSION, IcebergStaged, file_of
from holdfast.connectors.iceberg.table import IcebergTable
from holdfast.connectors.iceberg.writer import IcebergSink
from holdfast.connectors.lake.footers import staged_parts
from holdfast.connectors.lake.prepare import SchemaSaveMode
from holdfast.errors import OutcomeUnknown, UserError
from holdfast.model.job import Mode
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type
from tests.unit.connectors.opening import open_tables

NAME = ("db", "rows")
COLUMNS = (Column("id", Type("bigint")), Column("name", Type("string")))
ROWS = Table(TablePath.parse("db.rows"), COLUMNS)
ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("name", pa.string(), metadata={"PARQUET:field_id": "2"}),
    ]
)


class World:
    """A warehouse with one table, and sinks that write to it."""

    def __init__(self, root: Path, catalog: dict[str, str]) -> None:
        self.root = root
        self.catalog = catalog
        self.next = 0

    def sink(self, **more: Any) -> IcebergSink:
        given = {"catalog": self.catalog, "namespace": "db", "table": "rows"} | more
        context = PluginContext("7", "job", "Sink[0]-Iceberg", Mode.STREAMING)
        return IcebergSink(IcebergSinkOptions(**given), context)

    def table(self) -> IcebergTable:
        found = self.sink()._load(NAME)
        assert found is not None
        return found

    def stage(self, *, numbered: bool = True) -> Committable:
        """Put a file with one row out of sight; its number is that of the row."""
        self.next += 1
        table, folder = self.table(), f"_holdfast/7.i1-task-1-a1-s{self.next}-t0"
        Path(table.place.path, folder).mkdir(parents=True)
        schema = ARROW if numbered else pa.schema([(f.name, f.type) for f in ARROW])
        rows = pa.table([[self.next], [f"row {self.next}"]], schema=schema)
        pq.write_table(rows, Path(table.place.path, folder, f"part-{self.next}.parquet"))
        parts = staged_parts(table.place.below(folder))
        fields = table.fields(by_name=not numbered)
        files = [file_of(part, n, folder, table, {}) for n, part in enumerate(parts)]
        made = IcebergStaged(
            table.name, table.location, folder, table.spec, fields, numbered, files
        )
        whole = Committable(VERSION, "db.rows", 1, files[0].bytes, made.to_plain())
        return Committable(**json.loads(json.dumps(asdict(whole))))

    def ids(self) -> list[int]:
        found = self.sink()._catalog.load_table(NAME)
        return sorted(found.scan().to_arrow()["id"].to_pylist())


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, {"type": "hadoop", "warehouse": tmp_path.as_uri()})
    made.sink().prepare([ROWS])
    return made


@pytest.fixture
def sql_world(tmp_path: Path) -> Iterator[World]:
    catalog = {
        "type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": tmp_path.as_uri(),
    }  # fmt: skip
    yield World(tmp_path, catalog)


def test_a_number_counts_once_and_a_lower_one_not_at_all(world: World) -> None:
    one, two, late = (world.stage() for _ in range(3))
    world.sink().commit(CommitId("u", 1), [one])
    world.sink().commit(CommitId("u", 5), [two])
    for number, made in ((1, one), (5, two), (3, late)):
        world.sink().commit(CommitId("u", number), [made])
    assert world.ids() == [1, 2]
    world.sink().commit(CommitId("other", 1), [late])
    assert world.ids() == [1, 2, 3]


def test_the_number_outlives_the_snapshot_and_the_property(world: World) -> None:
    made = world.stage()
    world.sink().commit(CommitId("u", 1, 99), [made])
    table = world.sink()._catalog.load_table(NAME)
    assert table.properties["holdfast.committed.u"] == "1"
    facts = table.current_snapshot().summary.additional_properties
    assert facts["holdfast.user"] == "u"
    assert facts["holdfast.watermark"] == "99"
    for number in range(1, 30):
        world.sink().commit(CommitId("w", number), [world.stage()])
    assert world.table().last("u") == 1, "its snapshot is gone"
    with world.sink()._catalog.load_table(NAME).transaction() as change:
        change.remove_properties("holdfast.committed.w")
    assert world.table().last("w") == 29, "its snapshot is there"


def test_of_two_on_the_same_state_one_is_refused(world: World) -> None:
    made = msgspec.convert(world.stage().content, IcebergStaged)
    old, new = world.table(), world.table()
    world.sink()._place(made.location).move(made.files[0].staged, made.files[0].final)
    assert new.add(CommitId("u", 1), made.files, made.location)
    assert not old.add(CommitId("u", 1), made.files, made.location)
    assert world.ids() == [1]


def test_of_two_on_the_same_state_the_other_job_comes_second(world: World) -> None:
    """A stranger in between only means to look again."""
    made, other = world.stage(), world.stage()
    sink = world.sink()
    catalog = sink._catalog
    wrap_once(catalog, before=lambda: world.sink().commit(CommitId("other", 1), [other]))
    sink.commit(CommitId("u", 1), [made])
    assert world.ids() == [1, 2]


@pytest.mark.parametrize("made", [True, False], ids=["made", "not made"])
def test_an_unknown_outcome_is_read_back(world: World, made: bool) -> None:
    one, sink = world.stage(), world.sink()
    files = list(world.root.rglob("*.parquet"))

    def fail() -> None:
        raise OSError("the line is dead")

    if made:
        wrap_once(sink._catalog, after=fail)
    else:
        wrap_once(sink._catalog, before=fail)
    with pytest.raises(OutcomeUnknown, match="the line is dead"):
        sink.commit(CommitId("u", 1), [one])
    assert world.ids() == ([1] if made else [])
    assert len(list(world.root.rglob("*.parquet"))) == len(files), "nothing is removed"
    sink.commit(CommitId("u", 1), [one])
    assert world.ids() == [1]


def test_only_our_old_snapshots_expire(world: World) -> None:
    world.sink().commit(CommitId("u", 1), [world.stage()])
    theirs = world.sink()._catalog.load_table(NAME)
    theirs.append(pa.table([[100], ["x"]], schema=ARROW))
    with theirs.manage_snapshots() as manage:
        manage.create_tag(theirs.snapshots()[0].snapshot_id, "kept")
    for number in range(2, 40):
        world.sink().commit(CommitId("u", number), [world.stage()])
    table = world.sink()._catalog.load_table(NAME)
    users = ["holdfast.user" in s.summary.additional_properties for s in table.snapshots()]
    assert users.count(False) == 1
    assert users.count(True) == 12, "the tagged, the newest ten, and the one just added"
    assert len(table.current_snapshot().manifests(table.io)) < 25, "manifests are merged"
    assert len(world.ids()) == 40


def test_a_table_made_anew_refuses_what_was_staged_for_the_old(world: World) -> None:
    made, old = world.stage(), world.table()
    again = Table(ROWS.path, (Column("id", Type("string")),))
    open_tables(world.sink(schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA), [again])
    assert not old.add(CommitId("u", 1), [], old.location)
    with pytest.raises(UserError, match="changed after rows were staged"):
        world.sink().commit(CommitId("u", 1), [made])
    assert world.ids() == []


def test_files_without_numbers_are_found_by_name_and_a_rename_is_noticed(world: World) -> None:
    world.sink().commit(CommitId("u", 1), [world.stage(numbered=False)])
    assert world.ids() == [1]
    made = world.stage(numbered=False)
    with world.sink()._catalog.load_table(NAME).update_schema() as change:
        change.rename_column("name", "title")
    found = world.sink()._catalog.load_table(NAME).scan().to_arrow()
    assert found["title"].to_pylist() == ["row 1"], "the table keeps the old name in mind"
    with pytest.raises(UserError, match="changed after rows were staged"):
        world.sink().commit(CommitId("u", 2), [made])


def test_a_column_may_be_added_and_renamed_between_staging_and_commit(world: World) -> None:
    made = world.stage()
    with world.sink()._catalog.load_table(NAME).update_schema() as change:
        change.rename_column("name", "title")
        change.add_column("more", LongType())
    world.sink().commit(CommitId("u", 1), [made])
    found = world.sink()._catalog.load_table(NAME).scan().to_arrow()
    assert found["title"].to_pylist() == ["row 1"], "files know columns by their numbers"


def test_a_hadoop_table_is_found_by_its_hint_and_without_it(world: World) -> None:
    metadata = world.root / "db" / "rows" / "metadata"
    for number in range(1, 6):
        world.sink().commit(CommitId("u", number), [world.stage()])
    assert (metadata / "version-hint.text").read_text() == "6"
    for text in ("5", "1", "77", "", None):
        if text is None:
            (metadata / "version-hint.text").unlink()
        else:
            (metadata / "version-hint.text").write_text(text)
        assert len(world.ids()) == 5
        assert (metadata / "version-hint.text").read_text() == "6"
        read = StaticTable.from_metadata(str(metadata.parent)).scan().to_arrow()
        assert read.num_rows == 5


def test_one_that_slept_through_many_commits_does_not_count_its_own(world: World) -> None:
    """The number after its state is free again, as old states are removed."""
    folder = world.root / "db" / "rows"
    old = world.sink()._catalog.load_table(NAME)
    for number in range(1, 31):
        world.sink().commit(CommitId("u", number), [world.stage()])
    kept = sorted(int(p.name[1:].partition(".")[0]) for p in folder.glob("metadata/v*.json"))
    assert kept == list(range(11, 32))
    with pytest.raises(CommitStateUnknownException):
        hadoop_catalog._publish(folder, 2, old.metadata)
    assert not (folder / "metadata" / "v2.metadata.json").exists()
    assert len(world.ids()) == 30


def test_a_dead_retirer_leaves_no_gap(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world.root / "db" / "rows"
    with monkeypatch.context() as patched:
        patched.setattr(hadoop_catalog, "_retire", lambda folder, last: None)
        for number in range(1, 31):
            world.sink().commit(CommitId("u", number), [world.stage()])
    world.sink().commit(CommitId("u", 31), [world.stage()])
    kept = sorted(int(p.name[1:].partition(".")[0]) for p in folder.glob("metadata/v*.json"))
    assert kept == list(range(12, 33))


def test_nothing_is_left_beside_the_states(world: World) -> None:
    world.sink().commit(CommitId("u", 1), [world.stage()])
    names = [p.name for p in (world.root / "db" / "rows" / "metadata").iterdir()]
    assert sorted(n for n in names if not n.endswith(".avro")) == [
        "v1.metadata.json",
        "v2.metadata.json",
        "version-hint.text",
    ]


def test_a_catalog_in_a_database(sql_world: World) -> None:
    sql_world.sink().prepare([ROWS])
    sql_world.sink().prepare([ROWS])
    one, two = sql_world.stage(), sql_world.stage()
    for _ in range(2):
        sql_world.sink().commit(CommitId("u", 1), [one])
    old, staged = sql_world.table(), msgspec.convert(two.content, IcebergStaged)
    sql_world.sink().commit(CommitId("u", 2), [two])
    assert not old.add(CommitId("u", 2), staged.files, staged.location)
    assert sql_world.ids() == [1, 2]
    again = Table(ROWS.path, (Column("id", Type("bigint")),))
    open_tables(sql_world.sink(schema_save_mode=SchemaSaveMode.RECREATE_SCHEMA), [again])
    assert sql_world.ids() == []


@pytest.mark.parametrize("kind", ["hadoop", "sql"])
def test_leftovers_go_from_every_table_that_placeholders_name(
    kind: str, world: World, sql_world: World
) -> None:
    one = world if kind == "hadoop" else sql_world
    if kind == "sql":
        one.sink().prepare([ROWS])
    dead, alive = one.stage(), one.stage()
    one.sink().commit(CommitId("u", 1), [alive])
    sink = one.sink(namespace="${database_name}", table="${table_name}")
    sink.sweep(Leftovers("7", "i2"))
    place = Path(one.table().place.path)
    assert (place / str(msgspec.convert(dead.content, IcebergStaged).folder)).exists()
    sink.sweep(Leftovers("7", "i1"))
    assert not (place / str(msgspec.convert(dead.content, IcebergStaged).folder)).exists()
    assert one.ids() == [2]


def wrap_once(
    catalog: Any,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Let something happen around the next commit of a catalog."""
    real = catalog.commit_table

    def commit_table(*given: Any) -> Any:
        catalog.commit_table = real
        before()
        made = real(*given)
        after()
        return made

    catalog.commit_table = commit_table


def refs(world: World) -> dict[str, int]:
    found = world.sink()._catalog.load_table(NAME).metadata.refs
    return {name: ref.snapshot_id for name, ref in found.items() if name != "main"}


def test_a_savepoint_tags_the_snapshot_of_its_commit_once(world: World) -> None:
    sink, user = world.sink(savepoint_tag=True), "7.i1.1.Sink[0]-Iceberg"
    assert sink.listens and not world.sink().listens
    sink.commit(CommitId(user, 1), [world.stage()])
    at = world.table().snapshot_of(user, 1)
    sink.listen(CommitEvent(CommitId(user, 1), ()), None)
    assert refs(world) == {}, "no savepoint"
    sink.commit(CommitId("other", 1), [world.stage()])
    for _ in range(2):  # nothing was staged since commit 1, and a new leader repeats it
        assert sink.listen(CommitEvent(CommitId(user, 2), (), savepoint=True), None) is None
    assert refs(world) == {"savepoint-7-i1-1-2": at}
    for number in range(3, 40):
        sink.commit(CommitId(user, number), [world.stage()])
    assert world.table().snapshot_of(user, 2) == at, "a tag keeps its snapshot"


def test_a_tag_of_somebody_else_is_never_moved(world: World) -> None:
    sink, user = world.sink(savepoint_tag=True), "7.i1.1.Sink[0]-Iceberg"
    sink.commit(CommitId("other", 1), [world.stage()])
    theirs = world.table().snapshot_of("other", 1)
    assert theirs and world.table().tag(theirs, "savepoint-7-i1-1-1")
    sink.commit(CommitId(user, 1), [world.stage()])
    sink.listen(CommitEvent(CommitId(user, 1), (), savepoint=True), None)
    assert refs(world) == {"savepoint-7-i1-1-1": theirs}
    stale = world.table()
    assert world.table().tag(theirs, "another")
    mine = stale.snapshot_of(user, 1)
    assert mine and not stale.tag(mine, "another"), "the table has moved on"
