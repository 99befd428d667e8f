"""Commits: whole or not at all, once, whoever makes them."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from holdfast.connect.sink import CommitId
from holdfast.connectors.files.committer import StagedFiles, abort, commit
from holdfast.connectors.files.opening import HIDDEN
from holdfast.errors import UserError

ONE = CommitId("run-1-Sink[0]", 1)


def visible(root: Path) -> dict[str, str]:
    """Return the files a reader such as Spark sees, with their content."""
    return {
        str(p.relative_to(root)): p.read_text()
        for p in sorted(root.rglob("*"))
        if p.is_file() and not any(n.startswith((".", "_")) for n in p.relative_to(root).parts)
    }


def staged(root: Path, name: str, files: dict[str, str], replace: bool = False) -> StagedFiles:
    """Stage files as a write does: final name to content."""
    folder = f"{HIDDEN}/{name}"
    pairs = []
    for number, (final, content) in enumerate(files.items()):
        path = root / folder / f"part-{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        pairs.append((f"{folder}/part-{number}", final))
    return StagedFiles(str(root), folder, tuple(pairs), replace)


def test_nothing_is_visible_before_the_commit_and_all_of_it_after(tmp_path: Path) -> None:
    one = staged(tmp_path, "s1", {"a.txt": "1", "day=1/b.txt": "2"})
    assert visible(tmp_path) == {}
    commit(ONE, [one])
    assert visible(tmp_path) == {"a.txt": "1", "day=1/b.txt": "2"}
    assert not (tmp_path / one.folder).exists()


def test_a_repeated_commit_changes_nothing_even_if_files_were_taken_away(tmp_path: Path) -> None:
    one = staged(tmp_path, "s1", {"a.txt": "1", "b.txt": "2"})
    commit(ONE, [one])
    (tmp_path / "a.txt").unlink()
    commit(ONE, [msgspec.convert(json.loads(json.dumps(one.to_plain())), StagedFiles)])
    assert visible(tmp_path) == {"b.txt": "2"}


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_another_process_finishes_a_commit_that_was_cut_short(tmp_path: Path, moved: int) -> None:
    one = staged(tmp_path, "s1", {"a.txt": "1", "b.txt": "2"})
    log = tmp_path / HIDDEN / "commits" / "run-1-Sink%5B0%5D-1"
    log.parent.mkdir()
    entry = {"files": [[s, t, False] for s, t in one.files], "folders": [one.folder]}
    log.write_text(json.dumps(entry | {"done": False, "version": 1}))
    for source, target in one.files[:moved]:
        os.link(tmp_path / source, tmp_path / target)  # cut off between the two names
    commit(ONE, [one])
    assert visible(tmp_path) == {"a.txt": "1", "b.txt": "2"}
    assert not (tmp_path / one.folder).exists()
    assert json.loads(log.read_text())["done"] is True


def test_a_file_that_is_nowhere_stops_the_commit_and_is_named(tmp_path: Path) -> None:
    one = staged(tmp_path, "s1", {"a.txt": "1", "b.txt": "2"})
    (tmp_path / one.files[1][0]).unlink()
    # Trying again brings nothing back, so this is no OutcomeUnknown.
    with pytest.raises(UserError, match=r"b\.txt"):
        commit(ONE, [one])
    assert visible(tmp_path) == {}, "nothing of a commit that cannot be whole shows"


def test_a_file_missing_in_one_folder_keeps_all_folders_as_they_are(tmp_path: Path) -> None:
    roots = [tmp_path / "orders", tmp_path / "users"]
    both = [staged(root, "s1", {"a.txt": root.name}) for root in roots]
    (roots[1] / both[1].files[0][0]).unlink()
    with pytest.raises(UserError, match="users/a"):
        commit(ONE, both)
    assert [visible(root) for root in roots] == [{}, {}]


def test_two_users_that_chose_the_same_name_both_get_on(tmp_path: Path) -> None:
    parts = [staged(tmp_path, f"s{n}", {"out.csv": str(n)}) for n in (1, 2)]
    log = tmp_path / HIDDEN / "commits" / "two-1"
    log.parent.mkdir()
    entry = {"files": [[s, t, False] for s, t in parts[1].files], "folders": [parts[1].folder]}
    log.write_text(json.dumps(entry | {"done": False, "version": 1}))
    commit(CommitId("one", 1), [parts[0]])
    commit(CommitId("two", 1), [parts[1]])
    commit(CommitId("two", 2), [staged(tmp_path, "s3", {"out.csv": "3"})])
    assert visible(tmp_path) == {"out.csv": "1", "out_1.csv": "2", "out_2.csv": "3"}


def test_an_entry_that_a_late_repeat_left_stands_in_nobodys_way(tmp_path: Path) -> None:
    for number in (1, 2):
        commit(CommitId("run", number), [staged(tmp_path, f"s{number}", {f"{number}.txt": "x"})])
    late = tmp_path / HIDDEN / "commits" / "run-1"
    moves = [[f"{HIDDEN}/s1/part-0", "1_1.txt", False]]
    late.write_text(
        json.dumps({"files": moves, "folders": [f"{HIDDEN}/s1"], "done": False, "version": 1})
    )
    commit(CommitId("run", 3), [staged(tmp_path, "s3", {"3.txt": "x"})])
    assert visible(tmp_path) == {"1.txt": "x", "2.txt": "x", "3.txt": "x"}
    assert [p.name for p in late.parent.iterdir()] == ["run-3"]


def test_a_taken_name_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("theirs")
    commit(ONE, [staged(tmp_path, "s1", {"out.csv": "ours"})])
    assert visible(tmp_path) == {"out.csv": "theirs", "out_1.csv": "ours"}


def test_copies_of_files_replace_them(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_text("old")
    commit(ONE, [staged(tmp_path, "s1", {"cat.png": "new"}, replace=True)])
    assert visible(tmp_path) == {"cat.png": "new"}


def test_only_the_last_commit_of_a_user_is_remembered(tmp_path: Path) -> None:
    for number in range(1, 4):
        one = staged(tmp_path, f"s{number}", {f"{number}.txt": "x"})
        commit(CommitId("run", number), [one])
        commit(CommitId("other-run", number), [staged(tmp_path, "o", {f"o{number}.txt": "x"})])
    logs = sorted(p.name for p in (tmp_path / HIDDEN / "commits").iterdir())
    assert logs == ["other-run-3", "run-3"]
    assert len(visible(tmp_path)) == 6


def test_a_late_repeat_of_an_older_commit_changes_nothing(tmp_path: Path) -> None:
    first = staged(tmp_path, "s1", {"1.txt": "x"})
    commit(CommitId("run", 1), [first])
    commit(CommitId("run", 2), [staged(tmp_path, "s2", {"2.txt": "x"})])
    (tmp_path / "1.txt").unlink()
    commit(CommitId("run", 1), [first])
    assert visible(tmp_path) == {"2.txt": "x"}


def test_an_abort_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    one = staged(tmp_path, "s1", {"a.txt": "1"})
    abort([one])
    abort([one])
    assert visible(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_one_commit_may_fill_several_folders(tmp_path: Path) -> None:
    roots = [tmp_path / "orders", tmp_path / "users"]
    commit(ONE, [staged(root, "s1", {"a.txt": root.name}) for root in roots])
    assert [visible(root) for root in roots] == [{"a.txt": "orders"}, {"a.txt": "users"}]
