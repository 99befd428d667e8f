"""Which files are read, and in which order."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.connect.source import END, IDLE, Budget, Slice
from holdfast.connectors.files import discovery
from holdfast.connectors.files.discovery import FoundFile, find_files, partitions_of
from holdfast.connectors.files.slices import as_they_come
from holdfast.connectors.files.source_options import LocalFileSourceOptions
from holdfast.errors import UserError
from holdfast.model.job import Mode
from holdfast.model.types import Type

Make = Callable[..., Any]
ALL = Budget(None, 0.0)


def put(root: Path, *names: str, size: int = 1) -> None:
    """Make files."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)


def names(root: Path, **options: Any) -> list[str]:
    """Return the files found under a folder."""
    table = LocalFileSourceOptions(path=str(root), **options)
    return [f.path.removeprefix(f"{root}/") for f in find_files(table)]


def test_files_are_found_below_folders_but_hidden_and_empty_ones_are_not(tmp_path: Path) -> None:
    put(tmp_path, "b.txt", "a/z.txt", ".crc", "_SUCCESS", ".holdfast/s/p.txt", "_x=1/k.txt")
    put(tmp_path, "empty.txt", size=0)
    assert names(tmp_path) == ["_x=1/k.txt", "a/z.txt", "b.txt"]
    assert [
        f.path for f in find_files(LocalFileSourceOptions(path=f"file://{tmp_path}/b.txt"))
    ] == [f"{tmp_path}/b.txt"]


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*/nowhere: there is no such file"):
        names(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"e2e.*\.txt", ["d/e2e_1.txt"]),
        (r"\Qo.csv\E", ["o.csv"]),
        (r"d/.*", ["d/e2e_1.txt", "d/x.txt"]),
        (r".*/d/x\.txt", ["d/x.txt"]),
        ("e2e", []),
    ],
)
def test_a_filter_must_match_a_name_or_a_path_whole(
    tmp_path: Path, pattern: str, found: list[str]
) -> None:
    put(tmp_path, "d/e2e_1.txt", "d/x.txt", "o.csv")
    assert names(tmp_path, file_filter_pattern=pattern) == found


def test_files_may_be_chosen_by_time_ending_and_partition(tmp_path: Path) -> None:
    put(tmp_path, "p=1/a.csv", "p=2/b.csv", "c.txt")
    os.utime(tmp_path / "p=2/b.csv", (0, 0))
    late = {"file_filter_modified_start": "2000-01-01 00:00:00"}
    assert names(tmp_path, **late) == ["c.txt", "p=1/a.csv"]
    early = {"file_filter_modified_end": "2000-01-01 00:00:00"}
    assert names(tmp_path, **early) == ["p=2/b.csv"]
    assert names(tmp_path, filename_extension=".csv", read_partitions=["p=1"]) == ["p=1/a.csv"]


def test_folders_name_partition_values() -> None:
    path = "/data/name=tyrant%2Flucifer/x/day=__HIVE_DEFAULT_PARTITION__/a=b.csv"
    assert partitions_of(path) == {"name": "tyrant/lucifer", "day": None}


def test_a_batch_without_checkpoints_is_one_slice(source: Make, tmp_path: Path) -> None:
    put(tmp_path, "n=1/b.txt", "n=1/a.txt")
    reading = source(path=str(tmp_path), file_format_type="text")
    planned = reading.plan(None, ALL)
    files = [f"{tmp_path}/n=1/a.txt", f"{tmp_path}/n=1/b.txt"]
    assert planned.content == [{"files": files, "partitions": ["n"]}]
    assert reading.plan(planned.after, ALL) is END
    assert [(c.name, c.type) for c in reading.tables()[0].columns] == [
        ("content", Type("string")),
        ("n", Type("string")),
    ]


def test_an_empty_folder_is_a_slice_without_files(source: Make, tmp_path: Path) -> None:
    for checkpointing in (False, True):
        reading = source(
            path=str(tmp_path), file_format_type="parquet", checkpointing=checkpointing
        )
        planned = reading.plan(None, Budget(10, 0.0))
        assert planned.content == [{"files": [], "partitions": []}]
        assert reading.plan(planned.after, Budget(10, 0.0)) is END
        assert reading.tables() is None


def test_a_batch_with_checkpoints_takes_files_in_order_within_its_budget(
    source: Make, tmp_path: Path
) -> None:
    put(tmp_path, "a.txt", "b.txt", "c.txt", size=1000)
    put(tmp_path, "other/z.txt")
    text = {"file_format_type": "text"}
    tables = [
        text | {"path": str(tmp_path), "file_filter_pattern": "[abc].txt"},
        text | {"path": str(tmp_path / "other"), "schema": {"table": "t2"}},
    ]
    taken: list[list[str]] = []
    position: Any = None
    while True:
        # A fresh source for each call: any process may ask.
        reading = source(checkpointing=True, tables_configs=tables)
        planned = reading.plan(position, Budget(25, 0.0))
        if planned is END:
            break
        taken.append([f[-5:] for part in planned.content for f in part["files"]])
        position = planned.after
    assert taken == [["a.txt", "b.txt"], ["c.txt"], ["z.txt"]]


def test_a_stream_reads_what_is_there_and_then_what_comes(source: Make, tmp_path: Path) -> None:
    put(tmp_path, "b.txt", "a.txt")
    reading = source(path=str(tmp_path), file_format_type="text", mode=Mode.STREAMING)
    reading.settle_ns = -10_000_000_000
    first = reading.plan(None, ALL)
    assert isinstance(first, Slice)
    assert {f[-5:] for f in first.content[0]["files"]} == {"a.txt", "b.txt"}
    assert reading.plan(first.after, ALL) is IDLE
    # A file that was written long ago and is moved into place now is new all the same.
    old = tmp_path.parent / "moved.txt"
    old.write_text("x")
    os.utime(old, (0, 0))
    old.rename(tmp_path / "0.txt")
    second = reading.plan(first.after, ALL)
    assert second.content[0]["files"] == [f"{tmp_path}/0.txt"]
    assert reading.plan(second.after, ALL) is IDLE
    assert len(str(second.after)) < 200


def test_a_stream_leaves_files_alone_that_have_just_changed(source: Make, tmp_path: Path) -> None:
    put(tmp_path, "a.txt")
    reading = source(path=str(tmp_path), file_format_type="text", mode=Mode.STREAMING)
    reading.settle_ns = 3600 * 10**9
    empty = reading.plan(None, ALL)
    assert empty.content == [{"files": [], "partitions": []}]
    assert reading.plan(empty.after, ALL) is IDLE


def watched(source: Make, tmp_path: Path) -> tuple[Path, Any, Any]:
    """Return a folder, a stream that waits an hour for what is written in it, and its position."""
    root = tmp_path / "in"
    root.mkdir()
    reading = source(path=str(root), file_format_type="text", mode=Mode.STREAMING)
    reading.settle_ns = 3600 * 10**9
    return root, reading, reading.plan(None, ALL).after


def moved(root: Path, name: str) -> Path:
    """Make a file elsewhere and move it into place, a moment later."""
    elsewhere = root.parent / f"elsewhere-{name}"
    elsewhere.write_text("x")
    os.utime(elsewhere, (0, 0))
    return elsewhere.rename(root / name)


def test_a_stream_reads_a_file_at_once_that_was_moved_into_place(
    source: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "_times_tell", lambda _device: True)
    root, reading, at = watched(source, tmp_path)
    moved(root, "a.txt")
    first = reading.plan(at, ALL)
    assert first.content[0]["files"] == [f"{root}/a.txt"]
    # One that is being written, and may be half there, keeps those back that came after it.
    put(root, "b.txt")
    moved(root, "c.txt")
    assert reading.plan(first.after, ALL) is IDLE
    moved(root, "b.txt")
    moved(root, "c.txt")
    second = reading.plan(first.after, ALL)
    assert second.content[0]["files"] == [f"{root}/b.txt", f"{root}/c.txt"]
    assert reading.plan(second.after, ALL) is IDLE


def test_a_file_that_somebody_still_writes_is_not_whole_whatever_its_times_say(
    source: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "_times_tell", lambda _device: True)
    root, reading, at = watched(source, tmp_path)
    with moved(root, "a.txt").open("a") as writing:
        (root / "a.txt").chmod(0o600)  # changes the file's time, as a move does
        assert reading.plan(at, ALL) is IDLE
        writing.write("more")
    moved(root, "a.txt")
    assert reading.plan(at, ALL).content[0]["files"] == [f"{root}/a.txt"]


def test_a_moved_file_waits_on_file_systems_whose_times_say_little(
    source: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "_times_tell", lambda _device: False)
    root, reading, at = watched(source, tmp_path)
    moved(root, "a.txt")
    assert reading.plan(at, ALL) is IDLE


def test_a_file_that_came_behind_a_look_keeps_those_back_that_it_saw_later() -> None:
    early, late = FoundFile("/in/b", 10, 1, moved=True), FoundFile("/in/a", 11, 1, moved=True)
    position: Any = {"marks": [{"ns": 5, "paths": []}]}
    # The first look has passed /in/b when it comes, and sees /in/a, which comes after it.
    assert as_they_come([[late, early]], [[]], position, None, 0, [[late]]) is IDLE
    both = as_they_come([[late, early]], [[]], position, None, 0, [[late, early]])
    assert isinstance(both, Slice)
    assert both.content == [{"files": ["/in/b", "/in/a"], "partitions": []}]
    # Nobody has looked twice at a file that has changed since.
    changed = FoundFile("/in/b", 12, 1, moved=True)
    only = as_they_come([[late, changed]], [[]], position, None, 0, [[late, early]])
    assert isinstance(only, Slice)
    assert only.content == [{"files": ["/in/a"], "partitions": []}]
    assert only.after == {"marks": [{"ns": 11, "paths": ["/in/a"]}]}


def test_a_stream_may_be_told_to_read_once(source: Make, tmp_path: Path) -> None:
    put(tmp_path, "a.txt")
    once = {"discovery_mode": "once", "mode": Mode.STREAMING}
    reading = source(path=str(tmp_path), file_format_type="text", **once)
    assert reading.plan(reading.plan(None, ALL).after, ALL) is END
