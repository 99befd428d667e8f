"""A job that hangs behind a commit says so, and is ended by force, on real processes."""

from pathlib import Path

import pytest

from tests.cluster.trouble import lock_scene

pytestmark = pytest.mark.spark


def test_a_job_behind_a_locked_table_says_so_and_a_cancel_by_force_ends_it(tmp_path: Path) -> None:
    assert lock_scene(tmp_path, interval_s=1.0, pages=False) == []
