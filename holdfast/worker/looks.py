"""Look at what a job names for a person who waits at a master: `check --connect` on a worker.

Each look has a thread of its own, which may hang in a driver.  When its time is over, what was
found by then is reported, with the stage that it hangs at; the thread counts until it ends.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.connect.checks import CheckReport
from holdfast.core.task import WorkerId
from holdfast.errors import Cancelled, HoldfastError, JobFileError, JobFileProblem
from holdfast.plan.masking import masked_text
from holdfast.plan.record import decode_spec
from holdfast.wire.messages import LookAtJob, Looked, Told
from holdfast.worker.attempt import WorkerRuntime
from holdfast.worker.connect import look_at_places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOKS_MAX = 4
"""How many looks run at a time; more would take Spark's cores from the tasks."""

TOLD_MAX = 500
"""How many mistakes are reported: a frame has a bound, and no one reads more."""

log = logging.getLogger("holdfast")


class LookRunner:
    """The looks of one worker."""

    def __init__(self, place: WorkerId, runner: WorkerRuntime) -> None:
        self._place = place
        self._runner = runner
        self._going: set[str] = set()
        self._lock = threading.Lock()

    def begin(self, order: LookAtJob, tell: Callable[[Looked], None]) -> None:
        """Start a look, unless it has begun; `tell` gets its answer, from any thread."""
        with self._lock:
            if order.request in self._going:
                return
            busy = len(self._going) >= LOOKS_MAX
            if not busy:
                self._going.add(order.request)
        look = _Look(order, self._place, self._runner, tell)
        if busy:
            look.end(f"it is busy with {LOOKS_MAX} other checks. Ask again in a minute")
            return
        threading.Thread(
            target=self._live, args=(look,), name=f"look-{order.request}", daemon=True
        ).start()

    def _live(self, look: "_Look") -> None:
        try:
            look.live()
        finally:
            with self._lock:
                self._going.discard(look.order.request)


class _Look:
    """One look, from its order to its answer."""

    def __init__(
        self,
        order: LookAtJob,
        place: WorkerId,
        runner: WorkerRuntime,
        tell: Callable[[Looked], None],
    ) -> None:
        self.order = order
        self._place = place
        self._runner = runner
        self._tell = tell
        self._report = CheckReport()
        self._until_s = time.monotonic() + order.within_s
        self._at = "Spark's start"
        self._spark: SparkSession | None = None
        self._answered = threading.Lock()

    def live(self) -> None:
        """Look, and answer once: when it is done, or when its time is over."""
        watch = threading.Timer(self.order.within_s, self._overdue)
        watch.daemon = True
        watch.start()
        try:
            self.end(self._failure())
        finally:
            watch.cancel()

    def end(self, failure: str) -> None:
        """Answer with all that was found so far, unless that was done."""
        if not self._answered.acquire(blocking=False):
            return
        report, place = self._report, self._place
        self._tell(
            Looked(
                self.order.term, place.worker, place.incarnation, self.order.request,
                _told(report.mistakes), _told(report.warnings), masked_text(failure),
            )
        )  # fmt: skip

    def _failure(self) -> str:
        """Look at everything; return why that could not be done."""
        try:
            spec = decode_spec(self.order.spec)
            self._report.lenient = spec.lenient
            job = spec.job(self._runner.registry, self._report)
            look_at_places(
                job, self._runner.registry, self._session, self._report,
                allow_python=spec.allow_python, cancelled=self._is_over, at=self._is_at,
            )  # fmt: skip
        except JobFileError:
            return ""  # its mistakes are in the report
        except Cancelled:
            return self._late()
        except HoldfastError as error:
            return str(error)
        except Exception as error:
            log.exception("the look %s failed", self.order.request)
            return f"a bug ended it: {error!r}. The worker's log has its stack"
        return ""

    def _session(self) -> "SparkSession":
        self._spark = self._runner.session()
        self._spark.sparkContext.addJobTag(self._tag)
        return self._spark

    @property
    def _tag(self) -> str:
        """The tag of every Spark job of this look."""
        return f"look-{self.order.request}"

    def _is_at(self, stage: str) -> None:
        self._at = stage

    def _is_over(self) -> bool:
        return time.monotonic() >= self._until_s

    def _late(self) -> str:
        return (
            f"it did not end within {self.order.within_s:g} s. It was at {self._at}: what that"
            " names does not answer, or is slow (--timeout gives it more time)"
        )

    def _overdue(self) -> None:
        """Answer in the place of a thread that hangs, and end its Spark jobs."""
        self.end(self._late())
        if self._spark is None:
            return
        try:
            self._spark.sparkContext.cancelJobsWithTag(self._tag)
        except Exception as error:  # noqa: BLE001  it was answered, and Spark's end is seen elsewhere
            log.info("the Spark jobs of look %s are not cancelled: %s", self.order.request, error)


def _told(mistakes: list[JobFileProblem]) -> tuple[Told, ...]:
    # A copy: the thread may still find more.
    return tuple(
        (m.place.file, m.place.line, m.place.column, masked_text(m.message))
        for m in list(mistakes)[:TOLD_MAX]
    )
