"""The worker's one thread that talks to Spark on behalf of tasks.

It cancels the Spark jobs of attempts that must end, again and again until their threads have, and
now and then looks at Spark's own figures of the others: they are the rows people see while a slice
runs, and the proof that it makes progress.  Calls into the JVM block, so none runs on the event
loop.
"""

import logging
import threading
from collections.abc import Callable, Iterable

from holdfast.errors import Unavailable
from holdfast.worker.attempt import Attempt
from holdfast.worker.row_counts import measure
from holdfast.worker.slice_pipeline import CANCEL_S

LOOK_S = 1.5

log = logging.getLogger("holdfast")


class SparkMonitor:
    """Looks after the attempts of one worker."""

    def __init__(self, loss: Callable[[float], Unavailable | None]) -> None:
        self._loss = loss
        self._attempts: dict[Attempt, None] = {}
        self._ending: dict[Attempt, None] = {}
        self._bell = threading.Condition()
        self._urgent = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self, lost: Callable[[], None]) -> None:
        """Begin, unless begun; `lost` is called once if Spark's JVM is found gone."""
        if self._thread:
            return
        self._thread = threading.Thread(
            target=self._live, args=(lost,), name="spark-helper", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Let the thread end."""
        with self._bell:
            self._closed = True
            self._bell.notify()

    def look_at(self, attempt: Attempt) -> None:
        """Watch an attempt's progress."""
        with self._bell:
            self._attempts[attempt] = None

    def forget(self, attempt: Attempt) -> None:
        """An attempt's thread has ended."""
        with self._bell:
            self._attempts.pop(attempt, None)
            self._ending.pop(attempt, None)

    def cancel_soon(self, attempts: Iterable[Attempt]) -> None:
        """Cancel the Spark jobs of attempts, now and until their threads have ended."""
        with self._bell:
            fresh = [a for a in attempts if not a.over and a not in self._ending]
            self._ending.update(dict.fromkeys(fresh))
            if fresh:
                self._urgent = True
                self._bell.notify()

    def _live(self, lost: Callable[[], None]) -> None:
        told = False
        while True:
            with self._bell:
                if not self._urgent and not self._closed:
                    self._bell.wait(CANCEL_S if self._ending else LOOK_S)
                self._urgent = False
                if self._closed:
                    return
                ending = list(self._ending)
                running = [a for a in self._attempts if a not in self._ending]
            if self._loss(0):
                if not told:
                    lost()
                told = True
                continue
            for attempt in ending:
                self._guarded(_cancel, attempt)
            for attempt in running:
                self._guarded(_look, attempt)

    def _guarded(self, call: Callable[[Attempt], None], attempt: Attempt) -> None:
        """Make a call that will be repeated; trouble with Spark shows in the task itself."""
        try:
            call(attempt)
        except Exception as error:  # noqa: BLE001  the next round tries again
            log.info("%s: Spark does not answer the helper: %s", attempt.name, error)


def _cancel(attempt: Attempt) -> None:
    if attempt.spark and attempt.task:
        context = attempt.spark.sparkContext
        for group in (attempt.task.group, *attempt.tally.watched()):
            context.cancelJobGroup(group)


def _look(attempt: Attempt) -> None:
    """Note what an attempt's Spark jobs have moved, and whether they make progress."""
    if attempt.starting:
        attempt.beats += 1
    groups, spark = attempt.tally.watched(), attempt.spark
    if spark is None or not groups:
        return
    beat = 0
    for group in groups:
        measured = measure(spark, group)
        attempt.tally.moves(group, measured)
        beat += measured.pulse
    if beat != attempt.pulse:
        attempt.pulse = beat
        attempt.beats += 1
