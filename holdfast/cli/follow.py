"""Follow a job of a cluster to its end, through failovers, and say how it went."""

import signal
import sys
import time
from datetime import datetime
from types import FrameType

from holdfast.cli.terminal import screen, statistics
from holdfast.errors import UserError
from holdfast.node.api_views import JobDetail
from holdfast.node.client import Client

EVERY_S = 10.0
CODES = {"FINISHED": 0, "SAVEPOINT_DONE": 0, "CANCELED": 128 + signal.SIGINT}


class Follower:
    """One job, watched."""

    def __init__(
        self, client: Client, job_id: str, *, quiet: bool, cancel_on_leave: bool = False
    ) -> None:
        self.client = client
        self.job_id = job_id
        self.quiet = quiet
        self.cancel_on_leave = cancel_on_leave
        self._status = ""
        self._said_s = time.monotonic()
        self._asked = 0

    def follow(self) -> int:
        """Wait for the end and return the exit code.  A failed job raises its reason."""
        before = {s: signal.signal(s, self._leave) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            ended = self.client.wait(self.job_id, self._show)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        started, end = (datetime.fromtimestamp(s) for s in (ended.since_s, ended.ended_s))
        screen.print(
            statistics(started, end, ended.read, ended.written, 0, ended.rejected), markup=False
        )
        if ended.status not in CODES:
            raise UserError(f"Job {self.job_id} is {ended.status}. {ended.reason}".rstrip())
        if ended.status != "FINISHED":
            screen.print(f"Job {self.job_id} is {ended.status}.", markup=False)
        return CODES[ended.status] if not self._asked else 128 + self._asked

    def _show(self, now: JobDetail) -> None:
        """Say what changed, and every ten seconds how far the job is."""
        due = time.monotonic() - self._said_s >= EVERY_S
        if self.quiet or (now.status == self._status and not due):
            return
        self._status, self._said_s = now.status, time.monotonic()
        rejected = f", rejected {now.rejected:,}" if now.rejected else ""
        line = f"{now.status}: read {now.read:,} rows{rejected}, committed {now.written:,}"
        waits = sorted({t.waits for p in now.pipelines for t in p.tasks if t.waits})
        late = [p.reason for p in now.pipelines if p.reason]
        why = "; ".join(waits or late)
        screen.print(f"{line}; {now.health}. {why}".rstrip(), markup=False)

    def _leave(self, number: int, _frame: FrameType | None) -> None:
        """Ctrl-C leaves the job running, unless it is to be cancelled with this command."""
        if not self.cancel_on_leave or self._asked:
            screen.print(f"\nJob {self.job_id} goes on. Look: holdfast status {self.job_id}")
            sys.exit(128 + number)
        self._asked = number
        screen.print("Cancelling. Press again to leave at once.")
        self.client.cancel(self.job_id)
