"""What dead attempts and ended jobs have staged is removed, and nothing else is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import read_options
from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import CommitId, Leftovers, Staging
from holdfast.connectors.files.committer import StagedFiles, commit
from holdfast.connectors.files.opening import HIDDEN
from holdfast.connectors.files.sweep import folders_like, safe
from holdfast.connectors.spark import STAGED, SparkSink, SparkSinkOptions
from holdfast.errors import SourceLocation
from holdfast.model.job import Mode
from holdfast.model.tree import Block, Entry, Scalar

Make = Callable[..., Any]
JOB = Leftovers("7", "aa")


def stage(
    root: Path, job: str = "7", life: str = "aa", attempt: int = 1, task: str = "p1-t1"
) -> StagedFiles:
    """Stage one file as a write does."""
    name = f"{HIDDEN}/{safe(Staging(job, task, attempt, 1, life).name)}-t0"
    (root / name).mkdir(parents=True)
    (root / name / "part-0").write_text("rows")
    return StagedFiles(str(root), name, ((f"{name}/part-0", f"{job}{life}{attempt}{task}.txt"),))


def left(root: Path) -> list[str]:
    """Return the staged folders."""
    return sorted(p.name for p in root.glob(f"{HIDDEN}/*-t0"))


def test_only_what_a_life_has_staged_goes(sink: Make, tmp_path: Path) -> None:
    for job, life in (("7", "aa"), ("7", "ab"), ("77", "aa"), ("8", "aa")):
        stage(tmp_path, job, life)
    (tmp_path / HIDDEN / "7.aa-notes").mkdir()
    (tmp_path / HIDDEN / "7.aa-p1-t1-a1-s1-t0.txt").write_text("no folder of ours")
    (tmp_path / "7.aa-p1-t1-a1-s1-t0").mkdir()
    for _ in range(2):
        sink(path=str(tmp_path), file_format_type="text").sweep(JOB)
    assert left(tmp_path) == [
        "7.ab-p1-t1-a1-s1-t0", "77.aa-p1-t1-a1-s1-t0", "8.aa-p1-t1-a1-s1-t0",
    ]  # fmt: skip
    assert (tmp_path / HIDDEN / "7.aa-notes").is_dir()
    assert (tmp_path / HIDDEN / "7.aa-p1-t1-a1-s1-t0.txt").is_file()
    assert (tmp_path / "7.aa-p1-t1-a1-s1-t0").is_dir()


def test_former_attempts_of_one_task(sink: Make, tmp_path: Path) -> None:
    for attempt in (1, 2, 3):
        stage(tmp_path, attempt=attempt)
    stage(tmp_path, attempt=1, task="p1-t2")
    sink(path=str(tmp_path), file_format_type="text").sweep(Leftovers("7", "aa", "p1-t1", 3))
    assert left(tmp_path) == ["7.aa-p1-t1-a3-s1-t0", "7.aa-p1-t2-a1-s1-t0"]


def test_names_that_no_file_can_have(sink: Make, tmp_path: Path) -> None:
    stage(tmp_path, "a/b c", "ä:1", task="p 1")
    sink(path=str(tmp_path), file_format_type="text").sweep(Leftovers("a/b c", "ä:1", "p 1", 2))
    assert left(tmp_path) == []


@pytest.mark.parametrize("done", [False, True])
def test_what_a_commit_has_written_down_stays_until_it_is_done(
    sink: Make, tmp_path: Path, done: bool
) -> None:
    one = stage(tmp_path)
    user = CommitId("7.aa.1.Sink[0]-LocalFile", 1)
    log = tmp_path / HIDDEN / "commits" / "7.aa.1.Sink%5B0%5D-LocalFile-1"
    log.parent.mkdir()
    entry = {"files": [[s, t, False] for s, t in one.files], "folders": [one.folder]}
    log.write_text(json.dumps(entry | {"done": done, "version": 1}))
    sink(path=str(tmp_path), file_format_type="text").sweep(JOB)
    assert bool(left(tmp_path)) is not done
    assert log.exists()
    if not done:
        commit(user, [one])
        assert (tmp_path / one.files[0][1]).read_text() == "rows"


def test_an_empty_hidden_folder_goes_and_a_log_stays(sink: Make, tmp_path: Path) -> None:
    stage(tmp_path / "a")
    commit(CommitId("u", 1), [stage(tmp_path / "b")])
    for name in "ab":
        sink(path=str(tmp_path / name), file_format_type="text").sweep(JOB)
    assert not (tmp_path / "a" / HIDDEN).exists()
    assert list((tmp_path / "b" / HIDDEN / "commits").iterdir())


def test_every_folder_that_a_placeholder_may_have_named(sink: Make, tmp_path: Path) -> None:
    inside = [tmp_path / f"db_{t}" / "out" for t in ("one", "two")]
    outside = [tmp_path / "db_one" / "other", tmp_path / "elsewhere" / "out", tmp_path / "db_x"]
    for root in (*inside, *outside):
        stage(root)
    (tmp_path / "db_link").symlink_to(tmp_path / "elsewhere")
    path = f"{tmp_path}/db_${{table_name}}/out"
    sink(path=path, file_format_type="text").sweep(JOB)
    assert [left(r) for r in inside] == [[], []]
    assert all(left(r) for r in outside)


def test_links_are_not_followed(sink: Make, tmp_path: Path) -> None:
    stage(tmp_path / "theirs")
    (tmp_path / "ours" / HIDDEN).mkdir(parents=True)
    target = tmp_path / "theirs" / left(tmp_path / "theirs")[0]
    (tmp_path / "ours" / HIDDEN / target.name).symlink_to(
        tmp_path / "theirs" / HIDDEN / target.name
    )
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / HIDDEN).symlink_to(tmp_path / "theirs" / HIDDEN)
    for name in ("ours", "linked"):
        sink(path=str(tmp_path / name), file_format_type="text").sweep(JOB)
    assert left(tmp_path / "theirs")


def test_a_path_that_is_not_there(sink: Make, tmp_path: Path) -> None:
    for path in (f"{tmp_path}/no", f"{tmp_path}/no/${{table_name}}", f"{tmp_path}/f/${{comment}}"):
        (tmp_path / "f").write_text("a file")
        sink(path=path, file_format_type="text").sweep(JOB)
        assert list(folders_like(path)) == []


def test_the_spark_sink_sweeps_too(tmp_path: Path) -> None:
    here = SourceLocation("job.conf", 1, 1)
    given = {"format": "parquet", "path": str(tmp_path / "${table_name}")}
    block = Block(tuple(Entry(k, Scalar(v, v, here), here) for k, v in given.items()), here)
    options = read_options(SparkSinkOptions, block, "Spark", CheckReport())
    assert options
    sink = SparkSink(options, PluginContext("7", "job", "Sink[0]-Spark", Mode.BATCH))
    for job, attempt in (("7", 1), ("7", 2), ("8", 1)):
        name = Staging(job, "p1-t1", attempt, 1, "aa").name
        (tmp_path / "t" / f"{STAGED}{name}-db.t").mkdir(parents=True)
    sink.sweep(Leftovers("7", "aa", "p1-t1", 2))
    assert len(list((tmp_path / "t").iterdir())) == 2
    for _ in range(2):
        sink.sweep(JOB)
    assert [p.name for p in (tmp_path / "t").iterdir()] == [f"{STAGED}8.aa-p1-t1-a1-s1-db.t"]
