"""What a former incarnation staged is not compared with options that have changed since."""

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.connect.sink import CommitId
from holdfast.connectors.files.writer import LocalFileSink
from holdfast.errors import UserError
from tests.unit.connectors.test_hostile_committables import OTHER, USER, Make, local


def test_what_a_former_incarnation_staged_shows_where_it_wrote(make: Make, tmp_path: Path) -> None:
    one = local(make, tmp_path)
    moved = replace(one.sink.options, path=str(tmp_path / "elsewhere"))
    sink = LocalFileSink(moved, replace(one.sink.context, life=OTHER))
    with pytest.raises(UserError, match="is not where it writes"):
        sink.admit([one.good], OTHER)
    sink.commit(CommitId(USER, 1), [one.good])
    assert (tmp_path / "lake" / "t" / "a=1" / "b.txt").read_text() == "rows"
