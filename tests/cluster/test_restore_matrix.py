"""Job files that change between two lives: exact rows, or a refusal that names old and new.

One job with every source goes through a life for each kind of change, on the same two processes.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import UserError
from tests.cluster.processes import Cluster
from tests.cluster.restores import ROUNDS, STEP, Change, Part, Story, renamed, with_part

pytestmark = pytest.mark.spark

SLOW = "split.read-interval = 700, "
FAKE = Part("FakeSource", 1, "a", ("out1",), parallelism=2, options=SLOW)
ONCE = Part("once", 2, "b", ("out2",))
SPARK = Part("Spark", 3, "c", ("out3",))
CONTINUOUS = Part("continuous", 4, "d", ("out4",))
NEW = Part("FakeSource", 5, "e", ("out5",), options="split.read-interval = 1, ")
BASE = (FAKE, ONCE, SPARK, CONTINUOUS)
NEXT_ROWS = (ONCE, CONTINUOUS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    started.master()
    started.worker(slots=20)
    yield started
    started.end()


def changes() -> list[Change]:
    """The lives of the job, one after the other."""
    swapped = BASE[::-1]
    inserted = (NEW, *swapped)
    anew = renamed(inserted)
    options = with_part(anew, 1, lambda p: replace(p, options="split.read-interval = 500, "))
    options = with_part(options, 4, lambda p: replace(p, sink_options="batch_size = 7"))
    more = tuple(p if p.kind == "FakeSource" else replace(p, parallelism=3) for p in options)
    fewer = tuple(p if p.kind == "FakeSource" else replace(p, parallelism=1) for p in options)
    gone = fewer[1:]
    second = with_part(gone, 2, lambda p: replace(p, outs=("out2", "out2b")))
    named = with_part(second, 4, lambda p: replace(p, sink_options="uid = moved"))
    moved = with_part(named, 4, lambda p: replace(p, outs=("out4b",)))
    return [
        Change("as it was", BASE),
        Change("sources and sinks swapped", swapped, sinks_reversed=True),
        Change("a source and a sink inserted in front", inserted),
        Change("every dataset renamed", anew, sinks_reversed=True),
        Change("other options", options, interval_ms=300),
        Change("parallelism up", more),
        Change("parallelism down", fewer),
        Change("a source and its sink removed", gone, allow_dropped=True),
        Change("a second sink", second),
        Change("a uid given", named),
        Change("a sink moved under its uid", moved),
        Change("to the end", with_part(moved, 1, lambda p: replace(p, options=""))),
    ]


def test_each_change_of_a_job_file_keeps_every_row(cluster: Cluster, tmp_path: Path) -> None:
    story = Story(cluster, tmp_path, "changing")
    spark_rows = story.give(SPARK)
    for part in NEXT_ROWS:
        story.give(part)
    before_second: set[int] = set()
    reached = 0
    assert story.submit(Change("first", BASE), restore=False).restored == []
    for change in changes():
        least = min(reached + 1, 2 * 2 * ROUNDS)
        cluster.until(
            f"the life before '{change.what}' gets on",
            lambda least=least: len(story.shown("out1")) >= least and _files_are_shown(story),
        )
        story.stop()
        reached = len(story.shown("out1"))
        for out in ("out1", "out2", "out3", "out5", "out2b"):
            assert max(story.shown(out).values(), default=0) <= 1, f"{change.what}: {out}"
        if change.what == "a second sink":
            before_second = set(story.shown("out2"))
        for part in NEXT_ROWS:
            story.give(part)
        accepted = story.submit(change, restore=True)
        assert len(accepted.restored) >= len(change.parts), accepted.restored
    fake = Counter(range(STEP, STEP + 2 * 2 * ROUNDS))
    cluster.until("all rows are shown", lambda: len(story.shown("out1")) == len(fake))
    cluster.until("all files are shown", lambda: _files_are_shown(story))
    assert cluster.ask("cancel", "changing").returncode == 0
    assert story.shown("out1") == fake
    assert story.shown("out2") == Counter(range(2 * STEP, 2 * STEP + story.given[2]))
    assert story.shown("out3") == Counter(spark_rows)
    files = Counter(range(4 * STEP, 4 * STEP + story.given[4]))
    assert story.all_shown(("out4", "out4b")) == files and story.shown("out4b")
    # The sink that came later has the rows read since, and none from before.
    later = story.shown("out2b")
    assert later and max(later.values()) == 1 and not set(later) & before_second
    # The source that came later was read whole, and not again after it was dropped.
    assert set(story.shown("out5").values()) == {1}


def _files_are_shown(story: Story) -> bool:
    """Whether all that was given to the sources of files is visible."""
    return (
        len(story.shown("out2")) == story.given[2]
        and len(story.all_shown(("out4", "out4b"))) == story.given[4]
        and len(story.shown("out3")) == story.given[3]
    )


def refused(story: Story, change: Change) -> str:
    with pytest.raises(UserError) as said:
        story.submit(change, restore=True)
    assert said.value.code == "restore.mismatch", said.value
    return str(said.value)


def test_what_cannot_go_on_is_refused_with_old_and_new_and_the_savepoint_stays(
    cluster: Cluster, tmp_path: Path
) -> None:
    story = Story(cluster, tmp_path, "refusing")
    for part in (SPARK, *NEXT_ROWS):
        story.give(part)
    story.submit(Change("first", BASE), restore=False)
    outs = ("out1", "out2", "out3", "out4")
    cluster.until("all files are shown", lambda: all(story.shown(out) for out in outs))
    story.stop()
    cluster.until("the job is buried", lambda: _buried(cluster, "refusing"))
    seen = {out: story.shown(out) for out in outs}

    _refuses_what_is_gone_or_elsewhere(story, tmp_path)
    _refuses_what_positions_depend_on(story)

    # Nothing of this was started, and the savepoint is what it was.
    assert _buried(cluster, "refusing")
    assert {out: story.shown(out) for out in seen} == seen
    gone = "Source[0]-FakeSource"
    anew = with_part(BASE, 1, lambda p: replace(p, parallelism=1, outs=("out1b",), options=""))
    file = tmp_path / "job.conf"
    file.write_text(Change("begun anew", anew).text(tmp_path))
    command = ("restore", "refusing", str(file), "--async", "--map", f"{gone}=none")
    lost = cluster.ask(*command)
    assert lost.returncode == 1 and f"(path = {tmp_path / 'out1'}) of the saved" in lost.stderr
    wrong = cluster.ask(*command, "--map", "Sink[0]-LocalFile")
    assert wrong.returncode == 1 and "write it as OLD=NEW" in wrong.stderr
    given = cluster.ask(*command, "--map", "Sink[0]-LocalFile=none")
    assert given.returncode == 0, given.stderr
    for said in (f"path = {tmp_path / 'out1b'}) is new: it gets rows from now on",
                 "Source[1]-LocalFile (path = ", "in2) continues.",
                 "is dropped: where it had read to is forgotten"):  # fmt: skip
        assert said in given.stderr, given.stderr
    cluster.until("all is read anew", lambda: len(story.shown("out1b")) == 2 * ROUNDS)
    assert cluster.ask("cancel", "refusing").returncode == 0
    assert story.shown("out1b") == Counter(range(STEP, STEP + 2 * ROUNDS))
    assert {out: story.shown(out) for out in seen} == seen
    happened = cluster.client.timeline("refusing").events
    assert [e.status for e in happened].count("RESTORED") == 2 + 2 * len(BASE)
    assert any(e.reason.startswith(f"{gone} (auto.incr") for e in happened)


def _refuses_what_is_gone_or_elsewhere(story: Story, base: Path) -> None:
    said = refused(story, Change("removed", BASE[1:]))
    assert "Source[0]-FakeSource (auto.increment.start = 1000000," in said
    assert "Sink[0]-LocalFile" in said and "--allow-dropped" in said
    elsewhere = f"path = {base / 'elsewhere'}"
    for part in BASE:
        others = tuple(one for one in BASE if one is not part)
        said = refused(story, Change("removed", others))
        stage = f"Source[{part.number - 1}]-{part.plugin}"
        assert f"{stage} (" in said and "of the saved state is not in the job file" in said
        assert f"Sink[{part.number - 1}]-LocalFile (path = {base / part.outs[0]}" in said
    for part in NEXT_ROWS:
        path = base / f"in{part.number}"
        parts = with_part(BASE, part.number, lambda p: replace(p, folder="elsewhere"))
        said = refused(story, Change("another folder", parts))
        assert f"(path = {path})" in said and elsewhere in said
        stage = f"Source[{part.number - 1}]-LocalFile"
        said = refused(story, Change("mapped", parts, maps={stage: stage}))
        assert f"path was {path} and is {base / 'elsewhere'}" in said
    parts = with_part(BASE, 3, lambda p: replace(p, folder="elsewhere"))
    said = refused(story, Change("another path for Spark", parts))
    assert f"path = {base / 'in3'}" in said and elsewhere in said
    parts = with_part(BASE, 4, lambda p: replace(p, outs=("out9",)))
    said = refused(story, Change("a sink elsewhere", parts))
    assert f"path = {base / 'out4'}" in said and f"path = {base / 'out9'}" in said
    said = refused(story, Change("nobody", BASE, maps={"Source[9]-LocalFile": "none"}))
    assert "the saved state has no stage Source[9]-LocalFile" in said


def _refuses_what_positions_depend_on(story: Story) -> None:
    for now in (1, 4):
        parts = with_part(BASE, 1, lambda p, now=now: replace(p, parallelism=now))  # type: ignore[misc]
        said = refused(story, Change("parallelism", parts, allow_dropped=True))
        assert f"parallelism was 2 and is {now}" in said
    parts = with_part(BASE, 1, lambda p: replace(p, rows=3 * ROUNDS))
    said = refused(story, Change("more rows", parts))
    assert f"row.num = {2 * ROUNDS}" in said and f"row.num = {3 * ROUNDS}" in said
    for number, kind, was in ((2, "continuous", "once"), (4, "once", "continuous")):
        parts = with_part(BASE, number, lambda p, kind=kind: replace(p, kind=kind))  # type: ignore[misc]
        said = refused(story, Change("looks otherwise", parts))
        assert f"discovery_mode was {was} and is {kind}" in said


def _buried(cluster: Cluster, job: str) -> bool:
    found = cluster.client.job(job)
    return found.status == "SAVEPOINT_DONE" and not found.live
