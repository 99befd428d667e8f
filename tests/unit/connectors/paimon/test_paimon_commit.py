"""Commits to a Paimon table: the fence, what expires, and what a late committer may do."""

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.connect.sink import CommitEvent, CommitId, Committable
from holdfast.connectors.lake.footers import staged_parts
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.prepare import DataSaveMode
from holdfast.connectors.paimon.staged_files import (
    VERSION,
    Facts,
    PaimonFile,
    PaimonStaged,
    file_of,
    packed,
)
from holdfast.connectors.paimon.table import PaimonTable
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.errors import UserError
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.types import Type
from tests.unit.connectors.opening import open_tables
from tests.unit.connectors.paimon.paimon_tables import (
    PLACE,
    avro,
    folder,
    ids,
    sink,
    snapshots,
    stranger,
)

TABLE = Table(TablePath.parse(PLACE), (Column("id", Type("bigint")),))
SCHEMA = pa.schema([("id", pa.int64())])
LATE = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "3",
        "snapshot.time-retained": "1 h"}  # fmt: skip


def prepared(warehouse: Path, **props: str) -> PaimonSink:
    one = sink(warehouse, write_props=props)
    one.prepare([TABLE])
    return one


def staged(warehouse: Path, *numbers: int) -> list[Committable]:
    """Stage a file of rows, as a worker would."""
    where = f"_holdfast/7.i1-t-a1-s{numbers[0]}-t0"
    place = Location(str(folder(warehouse)))
    (folder(warehouse) / where).mkdir(parents=True)
    pq.write_table(
        pa.table({"id": list(numbers)}, schema=SCHEMA), folder(warehouse) / where / "part-0.parquet"
    )
    table = PaimonTable.load(place)
    assert table is not None
    files = [
        file_of(part, f"data-{uuid.uuid4()}-0.parquet", where, table.schema, Facts(1, 0, 0))
        for part in staged_parts(place.below(where))
    ]
    content = PaimonStaged(place.plain_url, where, 0, table.schema.mark, files).to_plain()
    stored: dict[str, Any] = json.loads(json.dumps(content))
    return [Committable(VERSION, PLACE, len(numbers), 1, stored)]


def files_of(made: Sequence[Committable]) -> list[PaimonFile]:
    return [file for one in made for file in msgspec.convert(one.content, PaimonStaged).files]


def loaded(warehouse: Path) -> PaimonTable:
    table = PaimonTable.load(Location(str(folder(warehouse))))
    assert table is not None
    return table


def age(warehouse: Path, hours: int = 2) -> None:
    """Make all snapshots look old."""
    for path in (folder(warehouse) / "snapshot").glob("snapshot-*"):
        said = json.loads(path.read_text())
        said["timeMillis"] -= hours * 3_600_000
        path.write_text(json.dumps(said))


def test_a_lower_number_changes_nothing(tmp_path: Path) -> None:
    one = prepared(tmp_path)
    made = {n: staged(tmp_path, n) for n in (1, 2, 3)}
    one.commit(CommitId("u", 2), made[2])
    one.commit(CommitId("u", 1), made[1])
    one.commit(CommitId("v", 1), made[3])
    assert ids(tmp_path) == [2, 3]


def test_the_watermark_never_goes_back(tmp_path: Path) -> None:
    one = prepared(tmp_path)
    for number, mark in enumerate((1000, 500, None, 2000), 1):
        one.commit(CommitId("u", number, mark), staged(tmp_path, number))
    assert [s.get("watermark") for s in snapshots(tmp_path)] == [1000, 1000, 1000, 2000]


def test_snapshots_expire_and_their_numbers_stay(tmp_path: Path) -> None:
    one = prepared(tmp_path, **LATE)
    first = staged(tmp_path, 1000)
    one.commit(CommitId("early", 7), first)
    for number in range(1, 20):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    left = [int(s["id"]) for s in snapshots(tmp_path)]
    assert left == list(range(18, 21))
    assert (folder(tmp_path) / "snapshot" / "EARLIEST").read_text() == "18"
    one.commit(CommitId("early", 7), first)
    one.commit(CommitId("u", 3), staged(tmp_path, 3))
    assert ids(tmp_path) == [*range(1, 20), 1000], "what has expired is not committed again"
    named = set()
    for snapshot in snapshots(tmp_path):
        for key in ("baseManifestList", "deltaManifestList"):
            named.add(snapshot[key])
            named |= {m["_FILE_NAME"] for m in avro(tmp_path, snapshot[key])}
    assert {p.name for p in (folder(tmp_path) / "manifest").iterdir()} == named


def test_manifests_are_merged(tmp_path: Path) -> None:
    one = prepared(tmp_path, **{"manifest.merge-min-count": "5"})
    for number in range(1, 24):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    last = snapshots(tmp_path)[-1]
    assert len(avro(tmp_path, last["baseManifestList"])) <= 5
    assert ids(tmp_path) == list(range(1, 24))
    assert last["totalRecordCount"] == 23


def test_time_is_what_expires_by_default(tmp_path: Path) -> None:
    one = prepared(tmp_path)
    for number in range(1, 20):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    assert len(snapshots(tmp_path)) == 19
    age(tmp_path)
    one.commit(CommitId("u", 20), staged(tmp_path, 20))
    assert [int(s["id"]) for s in snapshots(tmp_path)] == list(range(11, 21)), "ten are kept"


@pytest.mark.parametrize("what", ["consumer", "branch", "write-only"])
def test_what_others_need_is_kept(tmp_path: Path, what: str) -> None:
    one = prepared(tmp_path, **LATE, **({"write-only": "true"} if what == "write-only" else {}))
    for number in range(1, 10):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    if what == "consumer":
        (folder(tmp_path) / "consumer").mkdir()
        (folder(tmp_path) / "consumer" / "consumer-x").write_text('{"nextSnapshot": 4}')
    elif what == "branch":
        (folder(tmp_path) / "branch" / "branch-x").mkdir(parents=True)
    for number in range(10, 21):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    assert int(snapshots(tmp_path)[0]["id"]) == (4 if what == "consumer" else 1)


def test_snapshots_of_others_are_theirs_to_expire(tmp_path: Path) -> None:
    one = prepared(tmp_path, **LATE)
    for number in range(1, 6):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    stranger(tmp_path, [{"id": 100}], SCHEMA)
    for number in range(6, 20):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    left = [int(s["id"]) for s in snapshots(tmp_path)]
    assert left[:2] == [5, 6], "and one of ours before it, so that what it deletes is cleaned"
    assert ids(tmp_path) == [*range(1, 20), 100]


def test_a_number_that_others_let_expire_is_found_by_the_files(tmp_path: Path) -> None:
    one = prepared(tmp_path)
    made = staged(tmp_path, 1)
    one.commit(CommitId("u", 1), made)
    for number in range(100, 103):
        stranger(tmp_path, [{"id": number}], SCHEMA)
    (folder(tmp_path) / "snapshot" / "snapshot-1").unlink()  # as Flink's committer does
    one.commit(CommitId("u", 1), made)
    assert ids(tmp_path) == [1, 100, 101, 102]
    one.commit(CommitId("u", 2), staged(tmp_path, 2))
    assert ids(tmp_path) == [1, 2, 100, 101, 102]


@pytest.mark.parametrize("before", [0, 1, 4])
def test_one_that_wakes_after_its_turn_has_expired_changes_nothing(
    tmp_path: Path, before: int
) -> None:
    one = prepared(tmp_path, **LATE)
    for number in range(1, before + 1):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    late = loaded(tmp_path)
    made = staged(tmp_path, 500)
    place = Location(str(folder(tmp_path)))
    for file in files_of(made):
        place.move(file.staged, file.final)
    for number in range(before + 1, 21):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    assert not (folder(tmp_path) / "snapshot" / f"snapshot-{before + 1}").exists()
    numbers = {path.name for path in (folder(tmp_path) / "snapshot").iterdir()}
    try:
        assert not late.add(CommitId("v", 1), files_of(made))
    except FileNotFoundError:
        assert before, "what it would build on is gone"
    assert {path.name for path in (folder(tmp_path) / "snapshot").iterdir()} == numbers
    one.commit(CommitId("v", 1), made)
    assert ids(tmp_path) == [*range(1, 21), 500]


def test_a_stray_snapshot_does_not_stop_expiry(tmp_path: Path) -> None:
    one = prepared(tmp_path, **LATE)
    for number in range(1, 12):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    latest = folder(tmp_path) / "snapshot" / "snapshot-11"
    stray = json.loads(latest.read_text()) | {"id": 2}
    (folder(tmp_path) / "snapshot" / "snapshot-2").write_text(json.dumps(stray))
    for number in range(12, 21):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    assert [int(s["id"]) for s in snapshots(tmp_path)] == [18, 19, 20]


def test_files_that_were_dropped_go_with_the_last_snapshot_that_has_them(tmp_path: Path) -> None:
    one = prepared(tmp_path, **LATE)
    for number in (1, 2, 3):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    one.commit(CommitId("u", 4), staged(tmp_path, 4))
    (folder(tmp_path) / "tag").mkdir()
    (folder(tmp_path) / "tag" / "tag-kept").write_text(
        (folder(tmp_path) / "snapshot" / "snapshot-1").read_text()
    )
    open_tables(sink(tmp_path, data_save_mode=DataSaveMode.DROP_DATA), [TABLE])
    assert ids(tmp_path) == []
    files = sorted(folder(tmp_path).glob("bucket-0/*.parquet"))
    assert len(files) == 4
    for number in range(5, 21):
        one.commit(CommitId("u", number), staged(tmp_path, number))
    assert int(snapshots(tmp_path)[0]["id"]) == 18
    left = [path for path in files if path.exists()]
    (tagged,) = (pq.read_table(path)["id"].to_pylist() for path in left)
    assert tagged == [1], "a tag keeps what it has"
    assert ids(tmp_path) == list(range(5, 21))


def test_a_hint_that_leads_nowhere_is_not_believed(tmp_path: Path) -> None:
    one = prepared(tmp_path)
    for number in (1, 2, 3):
        one.commit(CommitId("u", number), staged(tmp_path, number))
        (folder(tmp_path) / "snapshot" / "LATEST").write_text("1" if number == 2 else "99")
    one.commit(CommitId("u", 4), staged(tmp_path, 4))
    assert ids(tmp_path) == [1, 2, 3, 4]
    assert (folder(tmp_path) / "snapshot" / "LATEST").read_text() == "4"


def test_a_savepoint_is_tagged_and_kept(tmp_path: Path) -> None:
    one = sink(tmp_path, write_props=LATE | {"sink.savepoint.auto-tag": "true"})
    one.prepare([TABLE])
    assert one.listens
    user = "7.i1.p1.Sink[0]-Paimon"
    for number in range(1, 21):
        made = staged(tmp_path, number)
        identifier = CommitId(user, number)
        one.commit(identifier, made)
        for _ in range(2):
            one.listen(CommitEvent(identifier, tuple(made), savepoint=number == 5), None)
    (tag,) = (folder(tmp_path) / "tag").iterdir()
    assert tag.name == "tag-savepoint-7-i1-p1-5"
    said = json.loads(tag.read_text())
    assert said["commitIdentifier"] == 5
    for key in ("baseManifestList", "deltaManifestList"):
        for manifest in avro(tmp_path, said[key]):
            assert avro(tmp_path, manifest["_FILE_NAME"])
    assert int(snapshots(tmp_path)[0]["id"]) == 18


def test_partitions_are_marked_as_the_table_options_say(tmp_path: Path) -> None:
    props = {"partition.mark-done-action": "success-file", "partition.end-input-to-done": "true"}
    one = sink(tmp_path, partition_keys="id", write_props=props)
    assert one.listens
    table = Table(TablePath.parse(PLACE), (*TABLE.columns, Column("x", Type("string"))))
    one.prepare([table])
    none = {"_MIN_VALUES": b"", "_MAX_VALUES": b"", "_NULL_COUNTS": []}
    meta = packed({
        "_FILE_NAME": "data-1.parquet", "_FILE_SIZE": 1, "_ROW_COUNT": 1, "_MIN_KEY": b"",
        "_MAX_KEY": b"", "_KEY_STATS": none, "_VALUE_STATS": none, "_MIN_SEQUENCE_NUMBER": 0,
        "_MAX_SEQUENCE_NUMBER": 0, "_SCHEMA_ID": 0, "_LEVEL": 0, "_EXTRA_FILES": [],
    })  # fmt: skip
    where = "_holdfast/7.i1-t-a1-s1-t0"
    content = PaimonStaged(str(folder(tmp_path)), where, 0, "m", [
        PaimonFile(f"{where}/a", "id=3/bucket-0/data-1.parquet", "", {"id": "3"}, 0, -1, meta),
    ])  # fmt: skip
    made = (Committable(VERSION, PLACE, 1, 1, content.to_plain()),)
    state = one.listen(CommitEvent(CommitId("u", 1), made), None)
    assert state is not None
    assert one.listen(CommitEvent(CommitId("u", 2), (), final=True), state) is None
    assert (folder(tmp_path) / "id=3" / "_SUCCESS").exists()
    with pytest.raises(UserError, match="marks partitions, and the table has none"):
        sink(tmp_path / "other", write_props=props).prepare([TABLE])


def test_a_commit_reads_no_more_as_the_table_grows(tmp_path: Path) -> None:
    one = prepared(tmp_path, **{"manifest.merge-min-count": "8"})
    opened: list[int] = []
    for number in range(1, 41):
        made = staged(tmp_path, number)
        opened.append(_calls(one, CommitId("u", number), made))
    assert max(opened[-10:]) <= 1.5 * max(opened[:12])


def _calls(one: PaimonSink, identifier: CommitId, made: Sequence[Committable]) -> int:
    """Commit; return how many files were opened for it."""
    count = 0
    real = Path.open

    def counted(self: Path, *args: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        return real(self, *args, **more)

    Path.open = counted  # type: ignore[method-assign]
    try:
        one.commit(identifier, made)
    finally:
        Path.open = real  # type: ignore[method-assign]
    return count
