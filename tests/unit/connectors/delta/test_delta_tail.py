"""Commits on top of a kept tail: the same as the library's, and only where they are safe."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.exceptions import DeltaError

from holdfast.connect.sink import CommitId
from holdfast.connectors.delta import log_tail as tail_file
from holdfast.connectors.delta.committer import TailLog, Tails, commit
from holdfast.connectors.delta.library import DeltaLog
from holdfast.connectors.delta.log_tail import Astray, Tail
from holdfast.connectors.delta.staged_files import DeltaFile, DeltaStaged
from holdfast.connectors.lake.location import Location
from holdfast.errors import OutcomeUnknown, Unavailable, UserError

ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
CITY = {"name": "city", "type": "string", "nullable": True, "metadata": {}}
AT = {"name": "at", "type": "timestamp_ntz", "nullable": True, "metadata": {}}


class World:
    """One table, the commits to it, and how often the library had to read it."""

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, Location(str(path))
        self.tails = Tails()
        self.loads = 0
        self.create()

    def create(self, *fields: dict[str, Any], **properties: str) -> None:
        schema = json.dumps({"type": "struct", "fields": list(fields) or [ID]})
        DeltaLog.create(self.place, schema, [], properties)

    def stage(self, number: int, rows: int = 1) -> DeltaStaged:
        """Stage a file whose rows are numbered from a thousand times its number."""
        folder = f"_holdfast/{number}"
        (self.path / folder).mkdir(parents=True, exist_ok=True)
        name = f"part-{number}.parquet"
        table = pa.table({"id": pa.array([number * 1000 + i for i in range(rows)], pa.int64())})
        pq.write_table(table, self.path / folder / name)
        size = (self.path / folder / name).stat().st_size
        stats = json.dumps({"numRecords": rows})
        file = DeltaFile(f"{folder}/{name}", name, size, rows, {}, stats)
        return DeltaStaged(str(self.path), folder, json.dumps({"id": "long"}), [], [file])

    def put(self, number: int, tails: Tails | None = None, user: str = "u") -> None:
        commit(CommitId(user, number), self.place, [self.stage(number)], tails or self.tails)

    def ids(self) -> list[int]:
        return sorted(DeltaTable(self.path).to_pyarrow_table()["id"].to_pylist())

    def named(self, version: int) -> Path:
        return self.path / "_delta_log" / f"{version:020}.json"

    @property
    def versions(self) -> list[int]:
        return sorted(int(p.stem) for p in (self.path / "_delta_log").glob("*.json"))

    @property
    def drafts(self) -> list[Path]:
        return list((self.path / "_delta_log").glob("_commit_*"))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path / "t")
    load = DeltaLog.load

    def counted(place: Location) -> DeltaLog | None:
        made.loads += 1
        return load(place)

    monkeypatch.setattr(DeltaLog, "load", staticmethod(counted))
    return made


def foreign(path: Path, value: int, **more: Any) -> None:
    write_deltalake(path, pa.table({"id": pa.array([value], pa.int64())}), mode="append", **more)


def actions(file: Path) -> list[dict[str, Any]]:
    """Return what a version says, without what differs from moment to moment."""
    found = [json.loads(line) for line in file.read_text().splitlines()]
    for action in found:
        for key in ("timestamp", "engineInfo", "clientVersion", "modificationTime", "lastUpdated"):
            next(iter(action.values())).pop(key, None)
    return found


@pytest.mark.parametrize("keys", [[], ["city"], ["city", "day"]], ids=len)
def test_a_commit_says_what_one_of_the_library_says(tmp_path: Path, keys: list[str]) -> None:
    odd = ["oslo", None, 'ü/ €😀"\\', ""]
    ascii_ = "".join(map(chr, range(32, 127))).replace("/", "")
    names = ["city=oslo/a b.parquet", "city=ü,+/%20.parquet", f"{ascii_}.parquet", "é.parquet"]
    stats = json.dumps({"numRecords": 1, "minValues": {"id": 1.5, "city": "ü"}})
    files = [
        DeltaFile("-", name, 7, 1, dict.fromkeys(keys, value), stats)
        for name, value in zip(names, odd, strict=True)
    ]
    fields = [ID, CITY, CITY | {"name": "day"}, AT]
    schema = json.dumps({"type": "struct", "fields": fields})
    places = [Location(str(tmp_path / name)) for name in ("ours", "library")]
    for number, watermark in ((3, None), (4, 1700)):
        for place in places:
            log: Any = DeltaLog.create(place, schema, keys, {})
            if place is places[0]:
                log = Tails().latest(place, "ü")
                assert isinstance(log, TailLog), "timestamps without zone ask nothing of a writer"
            assert log.add(CommitId("ü", number, watermark), files)
    for version in (1, 2):
        one, other = (actions(Path(p.path, "_delta_log", f"{version:020}.json")) for p in places)
        assert one == other
        assert list(one[1]["add"]) == list(other[1]["add"])
    one_table, other_table = (DeltaTable(p.path) for p in places)
    assert one_table.file_uris() != []
    assert one_table.get_add_actions().column("path") == other_table.get_add_actions().column(
        "path"
    )
    assert one_table.transaction_version("ü") == 4
    assert one_table.history()[0]["holdfast.watermark"] == "1700"


def test_the_library_reads_a_table_once_and_then_for_checkpoints(world: World) -> None:
    for number in range(1, 35):
        world.put(number)
    assert world.loads == 1 + 3
    assert world.ids() == [n * 1000 for n in range(1, 35)]
    assert world.drafts == []
    last = json.loads((world.path / "_delta_log" / "_last_checkpoint").read_bytes())
    assert last["version"] == 30
    for version in world.versions[:30]:
        world.named(version).unlink()
    assert len(world.ids()) == 34, "checkpoints have what former versions had"
    world.put(35)
    assert len(world.ids()) == 35
    assert not any((world.path / "_holdfast").iterdir()), "nothing staged is left"


def test_a_repeated_or_late_commit_changes_nothing(world: World) -> None:
    late = Tails()
    world.put(1, late)
    world.put(2)
    world.put(3)
    for number in (1, 2, 3):
        world.put(number, late)
        world.put(number)
    assert world.ids() == [1000, 2000, 3000]
    assert world.versions == [0, 1, 2, 3]
    world.put(2, user="other")
    assert world.versions == [0, 1, 2, 3, 4], "numbers of one user say nothing of another's"


def test_others_may_commit_in_between(world: World) -> None:
    world.put(1)
    loads = world.loads
    foreign(world.path, 7)
    DeltaTable(world.path).delete("id = 7")
    foreign(world.path, 8)
    world.put(2)
    assert world.ids() == [8, 1000, 2000]
    assert world.loads == loads, "rows of others are no reason to read all"
    DeltaTable(world.path).optimize.compact()
    world.put(3)
    assert world.ids() == [8, 1000, 2000, 3000]


def test_a_lost_race_is_tried_again_on_top_of_the_winner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put(1)
    rivals = iter([lambda: foreign(world.path, 7), lambda: foreign(world.path, 8)])
    before_link(monkeypatch, lambda: next(rivals, lambda: None)())
    world.put(2)
    assert world.ids() == [7, 8, 1000, 2000]
    assert world.versions == [0, 1, 2, 3, 4]
    assert world.loads == 1
    assert world.drafts == []


def test_a_race_lost_against_the_same_number_commits_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put(1)
    rivals = iter([lambda: world.put(3, Tails())])
    before_link(monkeypatch, lambda: next(rivals, lambda: None)())
    world.put(2)
    assert world.ids() == [1000, 3000]


def test_columns_that_others_change_are_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.put(1)
    more = pa.table({"id": pa.array([7], pa.int64()), "city": ["oslo"]})
    rivals = iter([lambda: write_deltalake(world.path, more, mode="append", schema_mode="merge")])
    before_link(monkeypatch, lambda: next(rivals, lambda: None)())
    world.put(2)
    assert world.ids() == [7, 1000, 2000]
    assert world.loads == 2
    text = pa.table({"id": ["x"]})
    write_deltalake(world.path, text, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(UserError, match="changed after rows were staged"):
        world.put(3)


@pytest.mark.parametrize("commits", [1, 2, 5])
def test_a_table_made_anew_is_read_anew(world: World, commits: int) -> None:
    for number in (1, 2):
        world.put(number)
    shutil.rmtree(world.path)
    world.create()
    for value in range(commits):
        foreign(world.path, value)
    world.put(3)
    assert world.ids() == [*range(commits), 3000]
    shutil.rmtree(world.path)
    with pytest.raises(UserError, match="there is no table"):
        world.put(4)


def test_a_table_made_anew_just_before_the_link_gets_no_version_of_the_old_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        world.put(number)
    (tail,) = world.tails._kept.values()

    def again() -> None:
        shutil.rmtree(world.path)
        world.create()

    before_link(monkeypatch, again)
    with pytest.raises(Astray):
        tail.committed(b"{}", 3)
    assert world.versions == [0]


def test_a_version_behind_a_checkpoint_is_not_taken_for_a_commit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.put(1)

    def overtake() -> None:
        if world.versions == [0, 1]:
            for number in range(12):
                foreign(world.path, number)
            DeltaTable(world.path).create_checkpoint()
            for version in range(2, 9):  # as one who removes old versions in any order
                world.named(version).unlink()

    before_link(monkeypatch, overtake)
    world.put(2)
    assert world.ids() == [*range(12), 1000, 2000]
    assert DeltaTable(world.path).version() == 14


def test_a_gap_and_a_line_cut_off_are_left_to_the_library(world: World) -> None:
    world.put(1)
    (tail,) = world.tails._kept.values()
    whole = world.named(1).read_bytes()
    world.named(3).write_bytes(whole)
    with pytest.raises(Astray):
        tail.advanced()
    for broken in (b"", b'{"add":{"path"', whole[:-9], b"[1]", b'{"txn":{"appId":"u"}}'):
        world.named(2).write_bytes(broken)
        with pytest.raises(Astray):
            tail.advanced()
    world.named(2).write_bytes(whole)
    assert tail.advanced().version == 3


@pytest.mark.parametrize(
    ("properties", "is_light"),
    [
        ({}, True),
        ({"delta.appendOnly": "true"}, True),
        ({"delta.logRetentionDuration": "interval 1 days"}, True),
        ({"delta.enableChangeDataFeed": "true"}, False),
        ({"delta.enableDeletionVectors": "true"}, False),
    ],
    ids=str,
)
def test_a_table_that_asks_more_of_writers_is_left_to_the_library(
    tmp_path: Path, properties: dict[str, str], is_light: bool
) -> None:
    world = World.__new__(World)
    world.path, world.place, world.tails = tmp_path / "t", Location(str(tmp_path / "t")), Tails()
    world.create(**properties)
    assert isinstance(world.tails.latest(world.place, "u"), TailLog) is is_light
    world.put(1)
    world.put(2)
    assert len(DeltaTable(world.path).file_uris()) == 2


@pytest.mark.parametrize(
    "feature", ["inCommitTimestamp", "rowTracking", "domainMetadata", "checkConstraints", "unheard"]
)
def test_a_feature_that_others_switch_on_is_seen(world: World, feature: str) -> None:
    world.put(1)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [feature]}
    world.named(2).write_text(json.dumps({"protocol": protocol}))
    (tail,) = world.tails._kept.values()
    with pytest.raises(Astray):
        tail.advanced()
    _, found = Tail.of(world.place, "u")
    assert found is None


def test_a_draft_that_was_left_behind_harms_nobody(world: World) -> None:
    world.put(1)
    left = world.path / "_delta_log" / "_commit_0123.json.tmp"
    left.write_bytes(b'{"add":{"pa')
    for number in range(2, 13):
        world.put(number)
    assert len(world.ids()) == 12
    assert left.exists()


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK], ids=str)
def test_without_hard_links_the_library_commits(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(number, "no links here")

    monkeypatch.setattr(tail_file.os, "link", refuse)
    world.put(1)
    world.put(2)
    assert world.ids() == [1000, 2000]
    assert world.drafts == []


@pytest.mark.parametrize("is_made", [True, False])
def test_an_unknown_outcome_is_looked_up(
    world: World, monkeypatch: pytest.MonkeyPatch, is_made: bool
) -> None:
    world.put(1)
    link = os.link

    def fail(source: Path, target: Path) -> None:
        if is_made:
            link(source, target)
        raise OSError(errno.EIO, "the disk is ill")

    with monkeypatch.context() as patched:
        patched.setattr(tail_file.os, "link", fail)
        with pytest.raises(OutcomeUnknown, match="cannot tell whether commit 2"):
            world.put(2)
    world.put(2)
    assert world.ids() == [1000, 2000]
    assert world.versions == [0, 1, 2]


def before_link(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let something happen after the last look and before the link."""
    link = os.link

    def late(source: Path, target: Path) -> None:
        act()
        link(source, target)

    monkeypatch.setattr(tail_file.os, "link", late)


def test_many_files_of_others_are_passed_over(world: World) -> None:
    world.put(1)
    add = {"path": "x", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    lines = [json.dumps({"add": add}, separators=(",", ":"))] * 1000
    mark = json.dumps({"txn": {"appId": "u", "version": 9}})
    world.named(2).write_text("\n".join([*lines, mark]))
    world.put(2)
    assert world.versions == [0, 1, 2], "the number was found behind a thousand files"


def test_a_column_rule_is_left_to_the_library(tmp_path: Path) -> None:
    rule = ID | {"metadata": {"delta.invariants": '{"expression":{"expression":"id > 0"}}'}}
    schema = json.dumps({"type": "struct", "fields": [rule]})
    DeltaTable.create(tmp_path / "t", Schema.from_json(schema))
    _, found = Tail.of(Location(str(tmp_path / "t")), "u")
    assert found is None


def test_a_log_that_others_shorten_while_it_is_read_is_read_again_later(world: World) -> None:
    class Shortened:
        def transaction_version(self, user: str) -> int:
            raise DeltaError("version 7 is gone")

    with pytest.raises(Unavailable, match="cannot read the table"):
        DeltaLog(world.place, Shortened()).last("u")
