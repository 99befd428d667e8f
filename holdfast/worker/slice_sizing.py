"""How large the next slice may be, and how long to rest after one.

A batch job without checkpoints is one slice, at the speed of plain Spark.  Otherwise slices grow or
shrink until one takes about a fifth of the checkpoint interval, so that a barrier never waits long
for the slice before it; where that would be less than two seconds, they may fill most of an
interval, because much of a very short slice is not its rows.  A job with a read limit takes about
a second's worth at a time.
"""

import math
from dataclasses import dataclass

from holdfast.model.job import JobPlan

ROWS_FIRST = 250_000
ROWS_LEAST = 1_000
ROWS_UNPROVEN = 1_000_000
"""How far slices grow that do not use what they may take: nobody knows how long a full one lasts.

A stream that trickles would else be allowed everything at once when the flood comes.
"""

FULL = 0.5
"""The share of its rows that a slice must have taken to prove anything about larger ones."""

GROWTH_MOST = 8.0
SHRINK_MOST = 4.0
SHARE_OF_INTERVAL = 0.2
SHARE_MOST = 0.9
SLICE_S_LEAST = 2.0
COLD_S = 3.0
"""What of the first slice may be the start of processes and connections, and proves nothing."""


@dataclass
class SliceSizer:
    """The state of pacing one task: the most rows of its next slice, None for all there are."""

    interval_s: float
    rows: int | None
    rows_per_second: int | None
    bytes_per_second: int | None = None
    cold: bool = True
    """Whether no slice has ended yet."""
    last: tuple[int, float] = (0, 0.0)
    """How many rows the slice before might have had, and how long it took."""

    @classmethod
    def of(cls, job: JobPlan, readers: int = 1) -> "SliceSizer":
        """Return the pace a task starts with.  A job's limits are those of each of its readers."""
        interval, limit, size = (
            job.checkpoint_interval_ms, job.rows_per_second, job.bytes_per_second
        )  # fmt: skip
        rows = None if interval is None else ROWS_FIRST
        if size is not None:  # how many bytes a row has is seen with the first slice
            rows = ROWS_LEAST
            size *= readers
        if limit is not None:
            limit *= readers
            rows = min(rows or limit, limit)
        return cls(math.inf if interval is None else interval / 1000, rows, limit, size)

    @property
    def free(self) -> bool:
        """Whether one slice may follow another at once."""
        return self.rows_per_second is None and self.bytes_per_second is None

    def after(self, rows: int, size: int, took_s: float, allowed: int | None = None) -> float:
        """Take in what a slice has read and how long it took; return how long to rest now.

        `allowed`: what it might have taken, if others have ended since it was planned.
        """
        if self.rows is None:
            return 0.0
        cold, self.cold = self.cold, False
        if not cold or took_s > COLD_S or not self.free:
            allowed = allowed or self.rows
            self.rows = self._next(allowed, rows, size, self._usual_s(allowed, took_s))
        rest_s = 0.0
        if self.rows_per_second:
            rest_s = rows / self.rows_per_second - took_s
        if self.bytes_per_second:
            rest_s = max(rest_s, size / self.bytes_per_second - took_s)
        return max(0.0, rest_s)

    def _usual_s(self, allowed: int, took_s: float) -> float:
        """Return how long so many rows take, judged by two slices: they may have run side by
        side, and then the second one seems to have taken no time."""
        before, before_s = self.last
        self.last = (allowed, took_s)
        return (took_s + before_s) * allowed / (allowed + before)

    def _next(self, allowed: int, rows: int, size: int, took_s: float) -> int:
        """Return how many rows the next slice may take."""
        # Without an interval a limit alone decides, and that for a second's worth.
        long_s = max(self.interval_s * SHARE_OF_INTERVAL, SLICE_S_LEAST)
        aim_s = 1.0 if math.isinf(self.interval_s) else min(self.interval_s * SHARE_MOST, long_s)
        factor = min(GROWTH_MOST, max(1 / SHRINK_MOST, aim_s / max(took_s, 0.001)))
        grown = max(ROWS_LEAST, int(allowed * factor))
        if rows < allowed * FULL:
            grown = min(grown, max(allowed, ROWS_UNPROVEN))
        if self.rows_per_second:
            grown = min(grown, self.rows_per_second)
        if self.bytes_per_second and size:
            grown = min(grown, max(1, self.bytes_per_second * rows // size))
        return grown
