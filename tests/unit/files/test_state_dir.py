"""What Holdfast keeps on disk, and what it takes away again."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.files import state_dir


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_folders_are_made_under_the_home(own_home: Path) -> None:
    assert state_dir.logs() == own_home / "logs"
    assert state_dir.cache().is_dir()


def test_scratch_is_gone_after_remove(tmp_path: Path) -> None:
    scratch = state_dir.claim_scratch()
    here = scratch.local_folders([])
    there = scratch.local_folders([str(tmp_path / "big disk")])
    assert here == [scratch.path / "spill"]
    assert there == [tmp_path / "big disk" / scratch.path.name]
    assert scratch.sockets.is_dir() and len(str(scratch.sockets)) <= state_dir.SOCKETS_LENGTH_MAX
    scratch.remove()
    scratch.remove()
    assert not scratch.path.exists() and not there[0].exists() and not scratch.sockets.exists()


def test_a_deep_home_gets_a_short_folder_for_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / ("deep" * 20)))
    scratch = state_dir.claim_scratch()
    assert len(str(scratch.sockets)) <= state_dir.SOCKETS_LENGTH_MAX
    scratch.remove()
    assert not scratch.sockets.exists()


def test_only_the_scratch_of_the_dead_is_wiped(tmp_path: Path) -> None:
    claim = (
        "from holdfast.files import state_dir as home; s = home.claim_scratch();"
        f"s.local_folders([{str(tmp_path)!r}]); print(s.path)"
    )
    ran = subprocess.run([sys.executable, "-c", claim], capture_output=True, text=True, check=True)
    dead = Path(ran.stdout.strip())
    alive = state_dir.claim_scratch()
    assert dead.exists() and (tmp_path / dead.name).exists()
    state_dir.wipe_stale()
    assert not dead.exists() and not (tmp_path / dead.name).exists()
    assert alive.path.exists()
    alive.remove()


def test_a_dead_run_stays_until_one_in_its_directory_takes_it_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = (
        "from holdfast.files import state_dir as home;"
        " s = home.claim_scratch(); s.mark_run(); print(s.path)"
    )
    run = [sys.executable, "-c", claim]
    ran = subprocess.run(run, capture_output=True, text=True, check=True, cwd=tmp_path)
    dead = Path(ran.stdout.strip())
    alive = state_dir.claim_scratch()
    alive.mark_run()
    state_dir.wipe_stale()
    assert dead.exists(), "it may owe something"
    assert state_dir.adopt_runs() == [], "its paths may be relative to another directory"
    monkeypatch.chdir(tmp_path)
    (adopted,) = state_dir.adopt_runs()
    assert adopted.path == dead
    assert state_dir.adopt_runs() == [], "it has a new owner"
    adopted.release()
    old_s = time.time() - state_dir.RUN_KEPT_S - 1
    os.utime(dead / state_dir.RUN, (old_s, old_s))
    assert state_dir.adopt_runs() == []
    state_dir.wipe_stale()
    assert not dead.exists() and alive.path.exists()
    alive.remove()


def test_a_home_that_cannot_be_made_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match="set HOLDFAST_HOME to a folder that is"):
        state_dir.logs()
