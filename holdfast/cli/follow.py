"""Follow a job of a cluster to its end, through failovers, and say how it went."""

import signal
import sys
import time
from types import FrameType

from holdfast.api.views import ENDED, JobDetail
from holdfast.cli.closing import show_closing, steps_after_submit
from holdfast.cli.terminal import screen
from holdfast.client import Client
from holdfast.errors import HoldfastError, UserError
from holdfast.process.run_result import result_on_cluster

EVERY_S = 10.0
TIMED_OUT = 124
"""The exit code if this command stops waiting while the job continues, as of `timeout`."""
CODES = {"FINISHED": 0, "SAVEPOINT_DONE": 0, "CANCELED": 128 + signal.SIGINT}


class Follower:
    """One job, watched."""

    def __init__(
        self,
        client: Client,
        job_id: str,
        *,
        quiet: bool,
        cancel_on_leave: bool = False,
        timeout_s: float = 0.0,
        box: bool = False,
    ) -> None:
        self.client = client
        self.job_id = job_id
        self.quiet = quiet
        self.cancel_on_leave = cancel_on_leave
        self.box = box
        self._timeout_s = timeout_s
        self._begun_s = time.monotonic()
        self._status = ""
        self._said_s = time.monotonic()
        self._asked = 0

    def follow(self) -> int:
        """Wait for the end and return the exit code.  A failed job raises its reason."""
        before = {s: signal.signal(s, self._leave) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            ended = self.client.wait(self.job_id, self.show)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self._close(ended)
        if ended.status not in CODES:
            raise UserError(f"Job {self.job_id} is {ended.status}. {ended.reason}".rstrip())
        if ended.status != "FINISHED":
            screen.print(f"Job {self.job_id} is {ended.status}.", markup=False)
        return CODES[ended.status] if not self._asked else 128 + self._asked

    def _close(self, ended: JobDetail) -> None:
        """Print where the rows are, as far as a leader knows."""
        try:
            counts = self.client.graph(self.job_id).tables
        except HoldfastError as e:  # how the job ended is known, and is said all the same
            counts = []
            screen.print(f"Where its rows are is not known now: {e}", markup=False)
        steps = steps_after_submit(self.job_id, self.client.master)
        result = result_on_cluster(ended, counts)
        show_closing(result, () if self.quiet else steps, box=self.box)

    def show(self, now: JobDetail) -> None:
        """Say what changed, and every ten seconds how far the job is, or what it waits for.

        A quiet command prints the latter too: a command that hangs says why.
        """
        waits = sorted({t.waits for p in now.pipelines for t in p.tasks if t.waits})
        why = "; ".join(waits or [p.reason for p in now.pipelines if p.reason])
        self._look_at_the_time(now, why)
        due = time.monotonic() - self._said_s >= EVERY_S
        if (now.status == self._status and not due) or (self.quiet and not (why and due)):
            return
        self._status, self._said_s = now.status, time.monotonic()
        rejected = f", rejected {now.rejected:,}" if now.rejected else ""
        line = f"{now.status}: read {now.read:,} rows{rejected}, committed {now.written:,}"
        health = f"; {now.health}" if now.health else ""
        screen.print(f"{line}{health}. {why}".rstrip(), markup=False)

    def _look_at_the_time(self, now: JobDetail, why: str) -> None:
        """Leave the job running once it was waited for long enough."""
        ended = now.status in ENDED
        if ended or not self._timeout_s or time.monotonic() - self._begun_s < self._timeout_s:
            return
        said = f"Job {self.job_id} is {now.status} after {self._timeout_s:g} s and continues. {why}"
        screen.print(said.rstrip(), markup=False)
        sys.exit(TIMED_OUT)

    def _leave(self, number: int, _frame: FrameType | None) -> None:
        """Ctrl-C leaves the job running, unless it is to be cancelled with this command."""
        if not self.cancel_on_leave or self._asked:
            screen.print(f"\nJob {self.job_id} continues. Look: holdfast status {self.job_id}")
            sys.exit(128 + number)
        self._asked = number
        screen.print("Cancelling. Press again to leave at once.")
        self.client.cancel(self.job_id)
