"""How large the next slice may be, and how long to rest after one.

A batch job without checkpoints is one slice, at the speed of plain Spark.  Otherwise slices grow or
shrink until one takes about a fifth of the checkpoint interval, so that a barrier never waits long
for the slice before it.
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
    """The state of pacing one task.  A limited one takes a second's worth of rows at most."""

    interval_s: float
    rows: int | None
    rows_per_second: int | None

    @classmethod
    def of(cls, job: Job) -> "Pace":
        """Return the pace a job starts with."""
        interval, limit = job.checkpoint_interval_ms, job.rows_per_second
        interval_s = math.inf if interval is None else interval / 1000
        rows = None if interval is None else ROWS_FIRST
        if limit is not None:
            rows = min(rows or limit, limit)
        return cls(interval_s, rows, limit)

    def after(self, rows: int, took_s: float) -> float:
        """Take in how a slice went; return how long to rest before the next."""
        if self.rows is None:
            return 0.0
        if self.interval_s < math.inf:
            wanted = self.interval_s * SHARE_OF_INTERVAL / max(took_s, 0.001)
            grown = int(self.rows * min(GROWTH_MOST, max(1 / GROWTH_MOST, wanted)))
            self.rows = max(ROWS_LEAST, grown)
        if self.rows_per_second is None:
            return 0.0
        self.rows = min(self.rows, self.rows_per_second)
        return max(0.0, rows / self.rows_per_second - took_s)
