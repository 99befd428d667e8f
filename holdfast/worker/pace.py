"""How large the next slice may be, and how long to rest after one.

A batch job without checkpoints is one slice, at the speed of plain Spark.  Otherwise slices grow or
shrink until one takes about a fifth of the checkpoint interval, so that a checkpoint never waits
long for the slice before it.
"""

import math
from dataclasses import dataclass

from holdfast.model.job import Job

ROWS_FIRST = 100_000
ROWS_LEAST = 1_000
GROWTH_MOST = 4.0
SHARE_OF_INTERVAL = 0.2


@dataclass
class Pace:
    """The state of pacing one pipeline."""

    interval_s: float
    rows: int | None
    rows_per_second: int | None

    @classmethod
    def of(cls, job: Job) -> "Pace":
        """Return the pace a job starts with."""
        interval = job.checkpoint_interval_ms
        limit = job.rows_per_second
        interval_s = math.inf if interval is None else interval / 1000
        if limit is not None:
            return cls(interval_s, limit, limit)
        return cls(interval_s, None if interval is None else ROWS_FIRST, None)

    def after(self, rows: int, took_s: float, *, idle: bool) -> float:
        """Take in how a slice went; return how long to rest before the next."""
        if idle or self.rows is None:
            return 0.0
        if self.rows_per_second is not None:
            return max(0.0, rows / self.rows_per_second - took_s)
        wanted = self.interval_s * SHARE_OF_INTERVAL / max(took_s, 0.001)
        self.rows = max(ROWS_LEAST, int(self.rows * min(GROWTH_MOST, max(1 / GROWTH_MOST, wanted))))
        return 0.0
