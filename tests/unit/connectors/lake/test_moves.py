"""Staged files go to where a table has them, once, and never onto another."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.connectors.lake.moves import move
from holdfast.connectors.lake.place import Place
from holdfast.errors import UserError


@dataclass(frozen=True)
class File:
    staged: str
    final: str


ONE, OTHER = File("_s/a", "a"), File("_s/b", "b")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    (tmp_path / "_s").mkdir()
    for name in ("a", "b"):
        (tmp_path / "_s" / name).write_text(f"staged {name}")
    return tmp_path


def test_files_are_moved_and_a_repeat_changes_nothing(table: Path) -> None:
    for _ in range(2):
        assert move(Place(str(table)), [ONE, OTHER]) == []
    assert [(table / n).read_text() for n in "ab"] == ["staged a", "staged b"]


def test_a_file_that_is_gone_is_told(table: Path) -> None:
    (table / "_s" / "b").unlink()
    assert move(Place(str(table)), [ONE, OTHER]) == [OTHER]


def test_another_file_is_not_overwritten(table: Path) -> None:
    (table / "b").write_text("somebody's")
    with pytest.raises(UserError, match="Nothing was overwritten"):
        move(Place(str(table)), [ONE, OTHER])
    assert (table / "b").read_text() == "somebody's"
    assert not (table / "a").exists(), "none is moved if one cannot be"
