"""Prefixes, revisions and machines: the small rules that all stores share."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.store import sqlite_file
from holdfast.store.contract import Change, HistoryLost
from holdfast.store.floor import Floor
from holdfast.store.order import by_revision, prefix_end

TEXT = st.text(
    st.one_of(st.sampled_from("ab\ud7ff\ue000\U0010ffff"), st.characters(codec="utf-8")), max_size=4
)


@given(TEXT, TEXT)
@example("\ud7ff", "\ud7ff\U0010ffff")
@example("a\U0010ffff", "b")
@example("\U0010ffff", "\U0010ffff\U0010ffff")
def test_a_prefix_is_a_range(prefix: str, key: str) -> None:
    end = prefix_end(prefix)
    for candidate in (key, prefix + key):
        inside = prefix <= candidate and (end is None or candidate < end)
        assert inside == candidate.startswith(prefix)
        encoded = candidate.encode()
        by_bytes = prefix.encode() <= encoded and (end is None or encoded < end.encode())
        assert by_bytes == inside


def test_changes_come_one_list_a_revision_sorted_by_key() -> None:
    a1, b1, a2 = Change("a", None, 1), Change("b", None, 1), Change("a", None, 2)
    assert by_revision([b1, a1, a2]) == [[a1, b1], [a2]]
    assert by_revision([]) == []


def test_an_answer_below_the_floor_ends_the_store() -> None:
    floor = Floor("etcd at here")
    start = floor.at()
    floor.check(7, start)
    floor.check(5, start)
    with pytest.raises(HistoryLost, match="is at revision 6 after it was at 7"):
        floor.check(6, floor.at())
    with pytest.raises(HistoryLost):
        floor.at()


def test_a_network_file_system_is_known_by_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        f"2 1 0:5 / {tmp_path}/far\\040away rw shared:1 - nfs4 server:/x rw\n"
        f"3 2 8:2 / {tmp_path}/far\\040away/near rw - xfs /dev/sdb rw\n"
    )
    monkeypatch.setattr(sqlite_file, "MOUNTS", mounts)
    assert sqlite_file.network_kind(tmp_path) is None
    assert sqlite_file.network_kind(tmp_path / "far away") == "nfs4"
    assert sqlite_file.network_kind(tmp_path / "far away" / "x") == "nfs4"
    assert sqlite_file.network_kind(tmp_path / "far away" / "near") is None
    assert sqlite_file.network_kind(tmp_path / "far away too") is None
