"""How large the next slice may be."""

from dataclasses import replace

import pytest

from holdfast.model.job import JobPlan, Mode
from holdfast.worker.slice_pipeline import ROWS_FIRST, ROWS_LEAST, ROWS_UNPROVEN, SliceSizer

JOB = JobPlan(
    name="job", mode=Mode.BATCH, stages=(), pipelines=(), parallelism=1,
    checkpoint_interval_ms=10_000, checkpoint_timeout_ms=None, retry_times=3, retry_interval_s=3,
    rows_per_second=None, bytes_per_second=None, tag_filter=(), spark=(), file="job.conf",
)  # fmt: skip


def test_full_slices_grow_to_a_fifth_of_the_interval() -> None:
    pace = SliceSizer.of(JOB)
    rows_a_second = 5_000_000
    for _ in range(10):
        assert pace.rows
        assert pace.after(pace.rows, 0, pace.rows / rows_a_second) == 0.0
    assert pace.rows == 2 * rows_a_second


def test_slices_fill_most_of_a_short_interval() -> None:
    pace = SliceSizer.of(replace(JOB, checkpoint_interval_ms=500))
    for _ in range(20):
        assert pace.rows
        pace.after(pace.rows, 0, pace.rows / 1_000_000)
    assert pace.rows == 450_000, "nine tenths of half a second"


def test_slices_that_do_not_fill_up_grow_only_so_far() -> None:
    pace = SliceSizer.of(JOB)
    for _ in range(50):
        pace.after(10, 0, 0.01)
    assert pace.rows == ROWS_UNPROVEN


def test_what_a_slice_proves_is_about_its_own_size() -> None:
    """Two are under way: the next is planned before what the last one took is known."""
    pace = SliceSizer.of(JOB)
    allowed = ROWS_FIRST
    for _ in range(40):
        planned, rows = allowed, pace.rows
        assert rows
        pace.after(planned, 0, planned / 1_000_000, planned)
        allowed = rows
    assert pace.rows == 2_000_000, "it settles, and does not swing"


def test_a_slice_that_ran_beside_another_is_not_taken_to_be_fast() -> None:
    pace = SliceSizer.of(replace(JOB, checkpoint_interval_ms=1_000))
    pace.after(100_000, 0, 0.1, 100_000)
    pace.after(500_000, 0, 0.9, 500_000)
    pace.after(500_000, 0, 0.001, 500_000)
    assert pace.rows == pytest.approx(1_000_000, rel=0.01)


def test_the_first_slice_may_be_slow_to_start() -> None:
    pace = SliceSizer.of(JOB)
    pace.after(ROWS_FIRST, 0, 2.9)
    assert pace.rows == ROWS_FIRST
    pace.after(ROWS_FIRST, 0, 2.9)
    assert pace.rows < ROWS_FIRST


def test_slices_never_shrink_to_nothing() -> None:
    pace = SliceSizer.of(JOB)
    for _ in range(50):
        pace.after(1, 0, 1000.0)
    assert pace.rows == ROWS_LEAST


def test_without_an_interval_or_a_limit_there_is_one_slice() -> None:
    pace = SliceSizer.of(replace(JOB, checkpoint_interval_ms=None))
    assert pace.rows is None
    assert pace.after(10**9, 10**12, 3600.0) == 0.0
    assert pace.rows is None


@pytest.mark.parametrize("interval_ms", [None, 10_000])
def test_a_limit_is_that_of_each_reader(interval_ms: int | None) -> None:
    pace = SliceSizer.of(replace(JOB, checkpoint_interval_ms=interval_ms, rows_per_second=100), 4)
    for _ in range(5):
        assert pace.rows == 400
        assert pace.after(400, 0, 0.25) == pytest.approx(0.75)


def test_bytes_are_limited_too() -> None:
    pace = SliceSizer.of(replace(JOB, checkpoint_interval_ms=None, bytes_per_second=50_000))
    assert pace.rows == ROWS_LEAST
    assert pace.after(1_000, 100_000, 0.5) == pytest.approx(1.5)
    assert pace.rows == 500, "as many as make a second's worth"
    assert pace.after(500, 50_000, 0.5) == pytest.approx(0.5)


def test_the_first_slice_is_of_a_size_that_any_machine_manages() -> None:
    assert SliceSizer.of(JOB).rows == ROWS_FIRST
