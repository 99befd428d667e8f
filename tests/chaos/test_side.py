"""Choosing scenarios, running them side by side, and what a run says at its end."""

import sys
from pathlib import Path

import pytest

from holdfast.errors import UserError
from tests.chaos.engine import side
from tests.chaos.engine.catalogue import beginning, chosen, part
from tests.chaos.engine.run import Result
from tests.chaos.engine.servers import PORTS, free_ports

EVERY = chosen("sqlite", [])


def test_parts_and_shares_leave_no_scenario_out() -> None:
    names = sorted(s.id for s in EVERY)
    assert sorted(s.id for n in range(1, 6) for s in part(EVERY, f"{n}/5")) == names
    for count in (1, 2, 4):
        shares = side.shares(EVERY, count)
        assert [s.id for share in shares for s in share] == [s.id for s in EVERY]
        assert len(shares[-1]) <= len(shares[0]) <= side.SHARE_MAX
    assert len(names) == len({*names})


def test_a_run_may_begin_at_a_window() -> None:
    assert beginning(EVERY, "") == EVERY
    assert beginning(EVERY, "E03")[0].window == "E03"
    assert beginning(EVERY, "F05-delta")[0].key == "F05-delta"
    with pytest.raises(UserError, match="no scenario for Z9"):
        beginning(EVERY, "Z9")


@pytest.mark.parametrize("which", ["0/5", "6/5", "5", "a/b"])
def test_what_is_no_part_is_refused(which: str) -> None:
    with pytest.raises(UserError, match="is no part"):
        part(EVERY, which)


def test_a_run_ends_with_every_failure_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    summary = side.Summary("sqlite", 3)
    summary.add(Result("E03 kill", "sqlite", window_hit=True, took_s=5.0))
    summary.add(Result("F05-delta kill", "sqlite", flaws=["a row is missing"], kept="build/x"))
    assert "  1/3 E03 kill" in capsys.readouterr().out
    end = summary.text()
    assert not summary.good
    for words in ("a row is missing", "kept: build/x", "make chaos STORE=sqlite ONLY=F05-delta"):
        assert words in end
    assert "2 of 3 scenarios run, 1 windows hit, 1 ok, 1 failed" in end.splitlines()[-1]


def test_results_come_from_all_processes_and_a_lost_one_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that tells half of its share and dies: the rest of it has failed, and is named."""
    child = tmp_path / "child"
    child.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        "ids = sys.argv[sys.argv.index('--ids') + 1].split('|')\n"
        "fd = int(sys.argv[sys.argv.index('--told') + 1])\n"
        "for id in ids[: 1 + len(ids) // 2]:\n"
        "    line = json.dumps({'id': id, 'store': 'sqlite', 'window_hit': True})\n"
        "    os.write(fd, line.encode() + b'\\n')\n"
        "sys.exit(3 if len(ids) > 2 else 0)\n"
    )
    child.chmod(0o755)
    monkeypatch.setattr(side.sys, "executable", str(child))
    heard: list[Result] = []
    side.run("sqlite", EVERY[:20], 2, heard.append)
    assert sorted(r.id for r in heard) == sorted(s.id for s in EVERY[:20])
    lost = [r for r in heard if not r.ok]
    assert lost
    assert all("ended with" in r.flaws[0] for r in lost)


def test_free_ports_are_none_that_connections_are_given() -> None:
    assert all(port in PORTS for port in free_ports(20))
