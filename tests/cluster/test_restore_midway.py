"""Jobs that go on from the middle of their files or of their first commit: real processes."""

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.api.requests import Submit
from holdfast.errors import UserError
from tests.chaos.engine.points import Points
from tests.cluster.processes import Cluster

pytestmark = pytest.mark.spark

FILES, EACH, STEP = 15, 10, 100_000
BASE_S = 3  # rows a second, so that each file is a slice


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Points:
    return Points(tmp_path_factory.mktemp("points") / "armed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, points: Points) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    started.environ["HOLDFAST_FAILPOINTS"] = str(points.folder)
    started.master()
    started.worker(slots=16)
    yield started
    points.clear()
    started.end()


def given(base: Path, number: int) -> Counter[int]:
    """Put files before a source; return their ids."""
    folder = base / f"in{number}"
    folder.mkdir()
    ids = range(number * STEP, number * STEP + FILES * EACH)
    for at in range(FILES):
        lines = (json.dumps({"id": i}) + "\n" for i in ids[at * EACH : (at + 1) * EACH])
        (folder / f"f{at:03}.json").write_text("".join(lines))
    return Counter(ids)


def source(base: Path, number: int, parallelism: int = 1, more: str = "") -> str:
    return f"""  LocalFile {{ plugin_output = s{number}, parallelism = {parallelism}, {more}
    path = "{base}/in{number}", file_format_type = json
    schema {{ fields {{ id = bigint }} }} }}"""


def sink(base: Path, number: int, out: str = "", more: str = "") -> str:
    return f"""  LocalFile {{ plugin_input = s{number}, path = "{base}/{out or f"out{number}"}"
    file_format_type = json, data_save_mode = DROP_DATA, {more} }}"""


def job(sources: list[str], sinks: list[str], speed: int = BASE_S, more: str = "") -> str:
    limit = f", read_limit.rows_per_second = {speed}" if speed else ""
    joined, ends = "\n".join(sources), "\n".join(sinks)
    return (
        f"env {{ job.mode = BATCH, checkpoint.interval = 500{limit} {more} }}\n"
        f"source {{\n{joined}\n}}\nsink {{\n{ends}\n}}\n"
    )


def shown(folder: Path) -> Counter[int]:
    """What a reader of a sink's folder sees."""
    found: Counter[int] = Counter()
    for at, below, files in os.walk(folder):
        below[:] = [name for name in below if not name.startswith((".", "_"))]
        for name in (n for n in files if n.endswith(".json") and not n.startswith(".")):
            found.update(json.loads(x)["id"] for x in (Path(at) / name).read_text().splitlines())
    return found


def old_rows(base: Path, out: str) -> Counter[int]:
    """Put another job's rows where a sink writes."""
    (base / out).mkdir()
    (base / out / "old.json").write_text('{"id": -1}\n{"id": -2}\n')
    return Counter([-1, -2])


def test_a_bounded_job_whose_file_changes_in_the_middle_of_its_files(
    cluster: Cluster, tmp_path: Path
) -> None:
    rows = {n: given(tmp_path, n) for n in (1, 2, 3)}
    for n in (1, 2, 3):
        old_rows(tmp_path, f"out{n}")

    def text(order: list[int], parallelism: int = 1, speed: int = BASE_S) -> str:
        return job(
            [source(tmp_path, n, parallelism) for n in order],
            [sink(tmp_path, n) for n in reversed(order)], speed,
        )  # fmt: skip

    lives = [text([1, 2]), text([2, 1]), text([3, 2, 1]), text([1, 3, 2], 3), text([2, 3, 1], 1, 0)]
    cluster.client.submit_text(lives[0], job_id="files")
    middles = 0
    for number, life in enumerate(lives[1:], 1):
        before = cluster.client.job("files").written
        cluster.until("it gets on", lambda b=before: cluster.client.job("files").written > b)
        cluster.client.savepoint("files")
        ended = cluster.client.wait("files", lambda _: None)
        assert ended.status == "SAVEPOINT_DONE", (number, ended.status, ended.reason)
        seen = {n: shown(tmp_path / f"out{n}") for n in rows}
        assert all(max(s.values(), default=0) <= 1 for s in seen.values())
        middles += all(0 < len(seen[n]) < len(rows[n]) for n in (1, 2))
        cluster.client.submit_text(life, job_id="files", restore=True)
    assert cluster.client.wait("files", lambda _: None).status == "FINISHED"
    assert {n: shown(tmp_path / f"out{n}") for n in rows} == rows
    assert middles > 1, "it was not in the middle of its files"


def held_at_its_first_commit(cluster: Cluster, points: Points, name: str, text: str) -> int:
    """Have a job stand still in its first commit, with another checkpoint complete, and end it."""
    number = points.arm("before:table.commit", "hold")
    cluster.client.submit_text(text, job_id=name)
    cluster.until("its commit is held", lambda: points.found(number))
    cluster.until(
        "another checkpoint waits",
        lambda: (p := cluster.client.job(name).pipelines) and p[0].checkpoint >= 2,
    )
    forced = cluster.ask("cancel", name, "--force")
    assert forced.returncode == 0, forced.stderr
    assert cluster.client.wait(name, lambda _: None).status == "CANCELED"
    return number


def test_a_first_commit_that_empties_is_finished_by_the_next_life(
    cluster: Cluster, points: Points, tmp_path: Path
) -> None:
    rows, old = given(tmp_path, 1), old_rows(tmp_path, "out1")
    text = job([source(tmp_path, 1)], [sink(tmp_path, 1)])
    number = held_at_its_first_commit(cluster, points, "first", text)
    assert shown(tmp_path / "out1") == old, "old rows went before the first commit"
    cluster.client.submit_text(
        job([source(tmp_path, 1)], [sink(tmp_path, 1)], 0), job_id="first", restore=True
    )
    assert cluster.client.wait("first", lambda _: None).status == "FINISHED"
    assert shown(tmp_path / "out1") == rows
    points.release(number)  # the commit of the dead life goes on
    cluster.until("all is quiet", lambda: not cluster.client.job("first").live)
    assert shown(tmp_path / "out1") == rows


def test_a_sink_that_moved_while_commits_waited_has_every_row_once_between_its_places(
    cluster: Cluster, points: Points, tmp_path: Path
) -> None:
    rows, old = given(tmp_path, 1), old_rows(tmp_path, "out1")
    before = job([source(tmp_path, 1)], [sink(tmp_path, 1, more="uid = rows")])
    number = held_at_its_first_commit(cluster, points, "moved", before)
    assert shown(tmp_path / "out1") == old
    cluster.client.submit_text(
        job([source(tmp_path, 1)], [sink(tmp_path, 1, "elsewhere", "uid = rows")], 0),
        job_id="moved", restore=True,
    )  # fmt: skip
    points.release(number)
    ended = cluster.client.wait("moved", lambda _: None)
    assert ended.status == "FINISHED", ended.reason
    assert shown(tmp_path / "out1") + shown(tmp_path / "elsewhere") == rows


def test_of_two_restores_at_once_under_two_ids_one_is_taken(
    cluster: Cluster, tmp_path: Path
) -> None:
    rows = given(tmp_path, 1)
    text = job([source(tmp_path, 1)], [sink(tmp_path, 1)])
    cluster.client.submit_text(text, job_id="one")
    cluster.until("it gets on", lambda: cluster.client.job("one").written > 0)
    cluster.client.savepoint("one")
    assert cluster.client.wait("one", lambda _: None).status == "SAVEPOINT_DONE"
    said: dict[str, str] = {}

    def go(name: str) -> None:
        try:
            given = Submit("", f"token of {name}", name, restore=True, source="one")
            cluster.client.send(given)
            said[name] = "yes"
        except UserError as error:
            said[name] = error.code

    threads = [threading.Thread(target=go, args=(n,)) for n in ("one", "two", "three", "four")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(said.values()) == {"yes": 1, "saved.past": 3}, said
    (taken,) = (n for n, yes in said.items() if yes == "yes")
    assert cluster.client.wait(taken, lambda _: None).status == "FINISHED"
    assert shown(tmp_path / "out1") == rows
