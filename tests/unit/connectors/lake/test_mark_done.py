"""Partitions that are done are marked: when, how, and again after a leader that died."""

import json
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import read_options
from holdfast.connect.sink import CommitEvent, CommitId
from holdfast.connectors.lake import mark_done
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.mark_done import MarkDone, Partition
from holdfast.connectors.lake.mark_options import (
    Action,
    Actions,
    Duration,
    MarkDoneOptions,
    MarkMode,
)
from holdfast.connectors.lake.partition_time import partition_time_ms, to_strptime
from holdfast.errors import SourceLocation as TextPlace
from holdfast.errors import Unavailable, UserError
from holdfast.model.secret import Secret
from holdfast.model.tree import Block, Entry, Scalar

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
MIDNIGHT_MS = round(datetime(2024, 5, 1, tzinfo=ZoneInfo("UTC")).timestamp() * 1000)
SUCCESS = Actions((Action.SUCCESS_FILE,))


class World:
    """A table's folder, a clock that tests set, and a listener that forgets all but its state."""

    def __init__(self, root: Path, **options: Any) -> None:
        given = {"mark_done": SUCCESS, "idle_time": Duration(HOUR_MS), "timestamp_zone": "UTC"}
        self.root = root
        self.options = MarkDoneOptions(**(given | options))
        self.now_ms = MIDNIGHT_MS
        self.number = 0
        self.state: Any = None

    def day(self, day: str = "2024-05-01") -> Partition:
        return Partition("shop.orders", str(self.root), f"dt={day}", (("dt", day),))

    def commit(self, *touched: Partition, again: bool = False, **about: Any) -> None:
        """Have the listener hear of the next commit; `again`: nobody remembers its answer."""
        self.number += 1
        commit = CommitEvent(CommitId("u", self.number, about.pop("watermark", None)), (), **about)
        listener = MarkDone(self.options, Location, lambda: self.now_ms / 1000)
        state = listener.after_commit(commit, touched, self.state)
        self.state = self.state if again else json.loads(json.dumps(state))

    def marks(self) -> dict[str, Any]:
        found = sorted(self.root.rglob("_SUCCESS"))
        return {str(p.parent.relative_to(self.root)): json.loads(p.read_text()) for p in found}


def test_a_partition_is_done_when_its_time_is_over_and_nothing_comes(tmp_path: Path) -> None:
    world = World(tmp_path, time_interval=Duration(DAY_MS))
    world.now_ms += HOUR_MS
    world.commit(world.day())
    world.now_ms += 5 * HOUR_MS
    world.commit()
    assert world.marks() == {}, "idle for long, but its day is not over"
    world.now_ms = MIDNIGHT_MS + DAY_MS + HOUR_MS - 1
    world.commit()
    assert world.marks() == {}, "the day is over, but not for an hour"
    world.now_ms += 1
    world.commit()
    assert world.marks() == {
        "dt=2024-05-01": {"creationTime": world.now_ms, "modificationTime": world.now_ms}
    }
    assert world.state is None
    assert not list(tmp_path.rglob(".*")), "no draft is left"


def test_rows_that_come_late_make_it_pending_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit(world.day())
    world.now_ms += HOUR_MS
    world.commit()
    first = world.now_ms
    world.commit(world.day())
    assert world.state["pending"]
    world.now_ms += HOUR_MS
    world.commit()
    marked = world.marks()["dt=2024-05-01"]
    assert marked == {"creationTime": first, "modificationTime": world.now_ms}


def test_a_new_leader_marks_what_the_last_one_left_and_repeats_do_no_harm(tmp_path: Path) -> None:
    world = World(tmp_path, mark_done=Actions((Action.SUCCESS_FILE, Action.DONE_PARTITION)))
    world.commit(world.day(), world.day("2024-05-02"))
    world.now_ms += HOUR_MS
    world.commit(again=True)  # it marked, and died before its answer was on record
    once = world.marks()
    world.commit()
    folders = ["dt=2024-05-01", "dt=2024-05-01.done", "dt=2024-05-02", "dt=2024-05-02.done"]
    assert list(once) == folders
    assert world.marks() == once
    assert world.state is None


def test_a_date_from_the_future_holds_a_partition_back_no_longer_than_from_now(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.now_ms += DAY_MS  # the leader's clock is a day ahead
    world.commit(world.day())
    world.now_ms -= DAY_MS
    world.commit()
    assert world.marks() == {}


def test_the_end_of_input_marks_all_if_it_is_to(tmp_path: Path) -> None:
    world = World(tmp_path, time_interval=Duration(DAY_MS))
    world.commit(world.day(), final=True)
    assert world.marks() == {}
    world.options = MarkDoneOptions(mark_done=SUCCESS, end_input_to_done=True)
    world.commit(world.day("__HIVE_DEFAULT_PARTITION__"))
    assert world.marks() == {}
    world.commit(final=True)
    assert list(world.marks()) == ["dt=2024-05-01", "dt=__HIVE_DEFAULT_PARTITION__"]


def test_by_watermark_no_clock_decides(tmp_path: Path) -> None:
    day = Duration(DAY_MS)
    world = World(tmp_path, mark_mode=MarkMode.WATERMARK, time_interval=day, idle_time=None)
    world.now_ms += 100 * DAY_MS
    world.commit(world.day())
    world.commit(watermark=MIDNIGHT_MS + DAY_MS - 1)
    assert world.marks() == {}
    world.commit(watermark=MIDNIGHT_MS + DAY_MS)
    assert list(world.marks()) == ["dt=2024-05-01"]


def test_a_partition_without_a_time_is_never_done_by_time(tmp_path: Path) -> None:
    world = World(tmp_path, time_interval=Duration(DAY_MS))
    world.commit(world.day("unknown"))
    world.now_ms += 1000 * DAY_MS
    world.commit()
    assert world.marks() == {} and world.state["pending"]


def test_the_list_of_pending_partitions_is_bounded_and_versioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mark_done, "PENDING_MAX", 2)
    world = World(tmp_path)
    with pytest.raises(UserError, match="3 partitions wait to be marked as done, the most is 2"):
        world.commit(*(world.day(f"2024-05-0{n}") for n in (1, 2, 3)))
    world.state = {"version": 99}
    with pytest.raises(UserError, match="version 99"):
        world.commit()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A web server that keeps what is posted; it answers with `status`."""
    monkeypatch.setenv("HOLDFAST_REPORT_HOSTS", "127.0.0.1")
    heard: list[tuple[dict[str, Any], str]] = []

    class Hook(BaseHTTPRequestHandler):
        status = 200

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.append((json.loads(body), self.headers["Idempotency-Key"]))
            assert self.headers["Authorization"] == "Basic dXNlcjpzZWNyZXQ="
            self.send_response(Hook.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.heard, server.hook = heard, Hook  # type: ignore[attr-defined]
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_report_is_tried_again_until_it_is_taken(tmp_path: Path, hook: Any) -> None:
    url = f"http://user:secret@127.0.0.1:{hook.server_port}/done?token=hidden"
    world = World(
        tmp_path, mark_done=Actions((Action.HTTP_REPORT,)), http_url=Secret(url), http_params="p",
        idle_time=Duration(0),
    )  # fmt: skip
    for status in (500, 404, 302):
        hook.hook.status = status
        with pytest.raises(Unavailable, match=str(status)) as caught:
            world.commit(world.day("ö/1"))
        assert "secret" not in str(caught.value) and "hidden" not in str(caught.value)
    hook.hook.status = 200
    world.number = 0
    world.commit(world.day("ö/1"), again=True)
    world.number = 0
    world.commit(world.day("ö/1"))
    assert world.state is None
    first, again = hook.heard[-2:]
    assert first == again, "the receiver can tell that it is the same"
    assert first[0] == {
        "table": "shop.orders", "path": str(tmp_path), "partition": {"dt": "ö/1"},
        "folder": "dt=ö/1", "user": "u", "commit": 1, "params": "p",
    }  # fmt: skip


def test_a_host_that_no_operator_allows_is_refused_at_the_first_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Actions((Action.HTTP_REPORT,))
    for url in ("http://169.254.169.254/latest", "http://[::1]/", "http://2130706433/"):
        world = World(tmp_path, mark_done=report, http_url=Secret(url))
        with pytest.raises(UserError, match=r"may not post to .*: masters here allow no host"):
            world.commit(world.day())
    monkeypatch.setenv("HOLDFAST_REPORT_HOSTS", "hook.internal, 10.0.0.1:8080")
    for url in ("http://10.0.0.1:8080/x", "https://u:p@HOOK.internal/x"):
        world = World(tmp_path, mark_done=report, http_url=Secret(url))
        world.commit(world.day())
    world.options = MarkDoneOptions(mark_done=report, http_url=Secret("http://10.0.0.1/x"))
    with pytest.raises(UserError, match=r"allow hook\.internal, 10\.0\.0\.1:8080"):
        world.commit(world.day())


def test_a_server_that_is_gone_is_told_in_words(tmp_path: Path, hook: Any) -> None:
    url = f"http://127.0.0.1:{hook.server_port}/x"
    hook.server_close()
    world = World(
        tmp_path,
        mark_done=Actions((Action.HTTP_REPORT,)),
        http_url=Secret(url),
        idle_time=Duration(0),
    )
    with pytest.raises(Unavailable, match=r"but the report to http://127\.0\.0\.1:\d+ failed"):
        world.commit(world.day())


@pytest.mark.parametrize(
    ("values", "pattern", "formatter", "wanted"),
    [
        ({"dt": "2024-05-01"}, None, None, "2024-05-01T00:00"),
        ({"dt": "2024-05-01 03:00:00"}, None, None, "2024-05-01T03:00"),
        ({"dt": "20240501"}, None, "yyyyMMdd", "2024-05-01T00:00"),
        ({"dt": "20240501", "hr": "07"}, "$dt $hr", "yyyyMMdd HH", "2024-05-01T07:00"),
        ({"y": "2024", "m": "5"}, "$y-$m-01", None, "2024-05-01T00:00"),
        ({"dt": None}, None, None, None),
        ({"dt": "2024-05-01", "hr": None}, "$dt $hr:00:00", None, None),
        ({"dt": "today"}, None, None, None),
        ({}, None, None, None),
    ],
)
def test_values_tell_when_a_partition_begins(
    values: Any, pattern: str | None, formatter: str | None, wanted: str | None
) -> None:
    zone = "Europe/Berlin"
    found = partition_time_ms(values, pattern, formatter, zone)
    if wanted is None:
        assert found is None
    else:
        moment = datetime.fromisoformat(wanted).replace(tzinfo=ZoneInfo(zone))
        assert found == round(moment.timestamp() * 1000)


def test_java_patterns_are_read_or_refused() -> None:
    assert to_strptime("yyyy'T'MM'%'dd") == "%YT%m%%%d"
    for wrong in ("EEE", "yyyy'x"):
        with pytest.raises(ValueError, match="not"):
            to_strptime(wrong)


def _read(**given: str) -> tuple[MarkDoneOptions | None, list[str]]:
    class Checked(MarkDoneOptions):
        """Options of a sink that has no others."""

        problems = MarkDoneOptions.mark_problems

    here, report = TextPlace("job.conf", 1, 1), CheckReport()
    entries = tuple(Entry(key, Scalar(v, v, here), here) for key, v in given.items())
    return read_options(Checked, Block(entries, here), "sink", report), [
        str(m) for m in report.mistakes
    ]


def test_options_are_read_as_paimon_writes_them() -> None:
    made, wrong = _read(**{
        "partition.mark-done-action": "success-file, done-partition",
        "partition.idle-time-to-done": "15 min", "partition.time-interval": "1 d",
        "partition.timestamp-formatter": "yyyyMMdd", "partition.mark-done-action.mode": "watermark",
    })  # fmt: skip
    assert wrong == [] and made
    assert made.mark_done == Actions((Action.SUCCESS_FILE, Action.DONE_PARTITION))
    assert (made.idle_time, made.time_interval) == (Duration(900_000), Duration(DAY_MS))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"partition.mark-done-action": "sucess-file"}, "'sucess-file' is not known. Good values"),
        ({"partition.mark-done-action": "success-file"}, "nothing says when a partition is done"),
        ({"partition.idle-time-to-done": "soon"}, "'soon' is no duration"),
        (
            {"partition.mark-done-action": "success-file",
             "partition.mark-done-action.mode": "watermark"},
            "give that, too",
        ),
        (
            {"partition.mark-done-action": "http-report", "partition.end-input-to-done": "true",
             "partition.mark-done-action.http.url": "file:///etc/passwd"},
            "http-report needs partition.mark-done-action.http.url",
        ),
        (
            {"partition.mark-done-action": "success-file", "partition.end-input-to-done": "true",
             "partition.timestamp-zone": "Mars"},
            "'Mars' is not a time zone",
        ),
        (
            {"partition.mark-done-action": "success-file", "partition.end-input-to-done": "true",
             "partition.timestamp-formatter": "EEE"},
            "partition.timestamp-formatter: 'EEE' is not one of",
        ),
    ],
)  # fmt: skip
def test_options_that_cannot_work_are_refused(given: dict[str, str], said: str) -> None:
    _, wrong = _read(**given)
    assert len(wrong) == 1 and said in wrong[0]
