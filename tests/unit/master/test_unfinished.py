"""What a job has not finished is shown commit by commit, with what is staged and what to do."""

from dataclasses import replace

from holdfast.core.checkpoint import CheckpointKind, Completed, Totals
from holdfast.core.gather import StagedCommittable
from holdfast.core.job import JobRecord, JobStatus
from holdfast.core.saved_state import Saved, SavedKind
from holdfast.core.unfinished import Abandoned
from holdfast.master.checkpoint_content import CheckpointContent
from holdfast.master.unfinished import SHOWN_MAX, Unfinished, lines, unfinished, ways

DONE = [Completed(n, CheckpointKind.PERIODIC, f"b{n}", n - 1) for n in range(40)]
JOB = JobRecord(
    "17", "a", "token", "shop", "", 1, JobStatus.CANCELED, life=3,
    abandoned=(Abandoned(1, ("lake", "shop"), (DONE[2], DONE[3]), True, DONE[1]),),
)  # fmt: skip


KEPT = Saved(
    "17", "a", 3, SavedKind.CANCELED, "", "", (), Totals(), 1.0, 1.0, 0.0,
)  # fmt: skip


def staged(number: int, sink: str, *files: str, rows: int = 5) -> StagedCommittable:
    content = {"version": 1, "table": "db.t", "rows": rows, "content": {"files": [*files, "x"]}}
    return StagedCommittable(number, sink, content)


def content(number: int, *parts: StagedCommittable) -> CheckpointContent:
    return CheckpointContent(1, "17", "a", 1, number, {}, parts, None)


def test_each_commit_is_shown_with_its_identifier_and_what_is_staged() -> None:
    held = content(2, staged(1, "lake", "old"), staged(2, "lake", "/out/17.a-t-a1-s2/one"),
                   staged(2, "shop", "17.a-t-a1-s3", rows=-1))  # fmt: skip
    found = unfinished(JOB, {"b2": held})
    assert [(u.number, u.sink) for u in found] == [
        (1, "lake"), (1, "shop"), (2, "lake"), (2, "shop"), (3, "lake"), (3, "shop"),
    ]  # fmt: skip
    lake, shop = found[2], found[3]
    assert lake.commit == "17.a.1.lake" and lake.staged == ("/out/17.a-t-a1-s2/one",)
    assert (lake.rows, lake.tables, shop.rows) == (5, ("db.t",), -1)
    assert "listeners may not have run" in found[0].state
    assert "it may be visible" in lake.state and found[4].state == "complete and not visible"
    assert found[4].staged == () and found[4].rows is None, "its checkpoint cannot be read now"


def test_what_a_life_before_had_left_has_that_lifes_identifier() -> None:
    left = Abandoned(1, ("lake",), (DONE[2],), True, life="17/z")
    (one,) = unfinished(replace(JOB, abandoned=(left,)), {})
    assert (one.commit, one.number) == ("17.z.1.lake", 2)
    assert left.words == (
        "Commit 2 of pipeline 1 of the former incarnation is abandoned, and 2 may have been under"
        " way."
    )


def test_long_lists_are_cut_and_say_so() -> None:
    files = [f"17.a-t-a1-s{n}" for n in range(SHOWN_MAX + 3)]
    job = replace(JOB, abandoned=(Abandoned(1, ("lake",), tuple(DONE[2:])),))
    found = unfinished(job, {"b2": content(2, staged(2, "lake", *files))})
    assert len(found) == SHOWN_MAX and (len(found[0].staged), found[0].more) == (SHOWN_MAX, 3)
    assert "All 38 are meant, also those not listed." in ways(job, KEPT)[0]


def test_the_ways_on_are_named() -> None:
    finish, give_up = ways(JOB, KEPT)
    assert "holdfast restart 17" in finish and "not written twice" in finish
    assert "holdfast savepoints rm 17 3" in give_up
    assert "removed" in ways(JOB, None)[0]
    assert ways(JOB, KEPT, "job 17, life 4, has gone on")[0].startswith("Job 17, life")


def test_people_read_it_line_by_line() -> None:
    one = Unfinished(1, 2, "lake", "17.a.1.lake", "complete", 1234, ("t",), ("/out/f",), 2)
    assert list(lines((one,), ("To finish: this.",))) == [
        "Not finished:",
        "- pipeline 1, commit 2 to lake: complete",
        "    identifier: 17.a.1.lake, 2",
        "    staged: 1,234 rows of t",
        "      /out/f",
        "      and 2 more",
        "To finish: this.",
    ]
    assert not list(lines((), ()))
