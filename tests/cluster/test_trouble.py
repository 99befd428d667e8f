"""What hangs says so, on real processes: behind a commit, on a Spark that stands still, or for
want of room.
"""

from pathlib import Path

import pytest

from tests.cluster.trouble import lock_scene
from tests.cluster.trouble_room import room_scene
from tests.cluster.trouble_spark import spark_scene

pytestmark = pytest.mark.spark


def test_a_job_behind_a_locked_table_says_so_and_a_cancel_by_force_ends_it(tmp_path: Path) -> None:
    assert lock_scene(tmp_path, interval_s=1.0, pages=False) == []


@pytest.mark.timeout(1800)
def test_a_spark_that_stands_still_says_so_and_is_started_anew(tmp_path: Path) -> None:
    assert spark_scene(tmp_path, silent_s=20.0, pages=False) == []


def test_a_job_without_room_says_so_and_a_drained_worker_makes_none_fail(tmp_path: Path) -> None:
    assert room_scene(tmp_path, pages=False) == []
