"""Failpoints: off by default, claimed by one process, and each action does what it says."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.process.failpoints import FOLDER, NAME, Failpoints, NoPoints, points_from_env


def arm(folder: Path, number: int, point: str, **facts: object) -> None:
    (folder / f"arm-{number}.json").write_text(json.dumps({"point": point, **facts}))


def points(folder: Path, name: str = "M1") -> Failpoints:
    made = points_from_env({FOLDER: str(folder), NAME: name}, lambda text: None)
    assert isinstance(made, Failpoints)
    return made


def test_off_without_a_folder() -> None:
    made = points_from_env({}, lambda text: None)
    assert isinstance(made, NoPoints)
    made.pass_now("before:anything")


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no folder"):
        points_from_env({FOLDER: str(tmp_path / "none")}, lambda text: None)


def test_counts_from_arming_on_and_acts_once(tmp_path: Path) -> None:
    made = points(tmp_path)
    made.pass_now("before:a")
    arm(tmp_path, 1, "before:a", count=2, action="error")
    made.pass_now("before:a")
    made.pass_now("before:b")
    with pytest.raises(Unavailable, match="before:a"):
        made.pass_now("before:a")
    made.pass_now("before:a")
    hit = json.loads((tmp_path / "hit-1.json").read_text())
    assert (hit["process"], hit["point"]) == ("M1", "before:a")


def test_a_point_can_be_disarmed(tmp_path: Path) -> None:
    made = points(tmp_path)
    arm(tmp_path, 1, "before:a", count=2, action="error")
    made.pass_now("before:a")
    (tmp_path / "arm-1.json").unlink()
    made.pass_now("before:a")


def test_one_process_claims_a_point(tmp_path: Path) -> None:
    first, second = points(tmp_path), points(tmp_path, "M2")
    arm(tmp_path, 1, "after:a", action="unknown")
    with pytest.raises(OutcomeUnknown):
        first.pass_now("after:a")
    second.pass_now("after:a")


def test_a_point_may_be_for_some_processes(tmp_path: Path) -> None:
    arm(tmp_path, 1, "before:a", action="error", process="W.")
    points(tmp_path, "M1").pass_now("before:a")
    with pytest.raises(Unavailable):
        points(tmp_path, "W1").pass_now("before:a")


@pytest.mark.parametrize("action", ["error", "stumble"])
def test_what_cannot_be_armed_is_refused(tmp_path: Path, action: str) -> None:
    arm(tmp_path, 1, "after:a", action=action)
    with pytest.raises(UserError, match="cannot be armed"):
        points(tmp_path).pass_now("after:a")


def test_hold_lets_others_go_on(tmp_path: Path) -> None:
    asyncio.run(_held(tmp_path))


async def _held(tmp_path: Path) -> None:
    made = points(tmp_path)
    arm(tmp_path, 1, "before:a", action="hold")
    held = asyncio.ensure_future(made.hit("before:a"))
    while not (tmp_path / "hit-1.json").exists():
        await asyncio.sleep(0.001)
    assert not held.done()
    (tmp_path / "release-1").touch()
    await asyncio.wait_for(held, 5)


def test_hold_of_a_thread(tmp_path: Path) -> None:
    made = points(tmp_path)
    arm(tmp_path, 1, "before:a", action="hold")
    thread = threading.Thread(target=made.pass_now, args=["before:a"])
    thread.start()
    (tmp_path / "release-1").touch()
    thread.join(5)
    assert not thread.is_alive()


def test_sleep(tmp_path: Path) -> None:
    arm(tmp_path, 1, "before:a", action="sleep:0.05")
    before_s = time.monotonic()
    asyncio.run(points(tmp_path).hit("before:a"))
    assert time.monotonic() - before_s >= 0.05


PASS = """
import os, sys
from holdfast.process.failpoints import points_from_env
points_from_env(os.environ, print).pass_now("before:a")
print("went on")
"""


def test_kill_is_kill_9_and_leaves_the_hit(tmp_path: Path) -> None:
    arm(tmp_path, 1, "before:a", action="kill")
    done = subprocess.run(
        [sys.executable, "-c", PASS], env={FOLDER: str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL
    assert "went on" not in done.stdout
    assert (tmp_path / "hit-1.json").exists()
