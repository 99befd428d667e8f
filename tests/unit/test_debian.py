"""Files of Debian's packages, with an apt-get that has them only once its list is new."""

import os
from pathlib import Path

import pytest

from tools import debian

APT = """#!/bin/sh
echo "$1" >> {calls}
case $1 in
  update) touch {lists} ;;
  download)
    test -e {lists} || {{ echo "Unable to locate package $2" >&2; exit 100; }}
    touch "$2.deb" ;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/share" && cp "$2" "$3/usr/share/unpacked"
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where calls of a false apt-get are noted, the only one there is."""
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()
    calls.touch()
    said = {"apt-get": APT.format(calls=calls, lists=tmp_path / "lists"), "dpkg": DPKG}
    for name, text in said.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return calls


def test_a_machine_without_a_list_gets_one_and_a_package_is_fetched_once(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    root = debian.unpacked("driver", "a-driver")
    assert root == tmp_path / "cache/holdfast/driver"
    assert (root / "usr/share/unpacked").exists()
    assert debian.unpacked("driver", "a-driver") == root
    assert calls.read_text().split() == ["download", "update", "download"]


def test_who_may_not_fetch_a_list_is_told_what_is_missing(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(debian.NoPackage, match="Unable to locate package a-driver"):
        debian.unpacked("driver", "a-driver")
    assert calls.read_text().split() == ["download"]
    assert [*(tmp_path / "cache/holdfast").iterdir()] == []
