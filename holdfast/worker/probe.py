"""Look whether Spark's JVM answers, without needing its good will.

A JVM that hangs (stopped by a signal, swapped out, busy collecting garbage) keeps every call
into it waiting, with no bound of its own, and looks alive to all who only look for its process.  So
a thread that does nothing else opens a connection of its own, shows the secret, and gives the
answer a bound.  Until the JVM listens it can only be asked of the kernel whether it is stopped.
What is found is said in every hello; after a bound the JVM is given up.

Only silence that was watched counts: time in which the machine or the worker slept does not.
"""

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from holdfast.spark.jvm import Jvm, stands_still

LOOK_S = 1.0
ANSWER_S = 3.0
SAID_S = 5.0
"""A silence of this length is reported: a pause to collect garbage is shorter, and harmless."""

START_SAID_S = 30.0
"""A start that takes so long is reported: even a machine that is busy needs less."""

log = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long Spark may take to start, and how long its JVM may not answer then."""

    start_s: float = 300.0
    silent_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """For how long Spark has been silent, or starting, beyond what is usual, and what that means.

    `""` where all is well.
    """

    silent_s: float = 0.0
    said: str = ""


class Probe:
    """Watches one JVM.  `started` says whether Spark's session is there."""

    def __init__(
        self,
        jvm: Jvm,
        started: Callable[[], bool],
        bounds: Bounds,
        given_up: Callable[[], object],
    ) -> None:
        self.trouble = Trouble()
        self._jvm = jvm
        self._started = started
        self._bounds = bounds
        self._given_up = given_up
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._live, name="spark-probe", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closed.set()

    def _live(self) -> None:
        starting_s = silent_s = 0.0
        while not self._closed.wait(LOOK_S) and self._jvm.is_alive:
            before_s, started = time.monotonic(), self._started()
            answers = self._answers()
            passed_s = LOOK_S + min(time.monotonic() - before_s, ANSWER_S)  # we may have slept
            silent_s = 0.0 if answers else silent_s + passed_s
            starting_s += 0.0 if started else passed_s
            trouble, why = self._silence(silent_s), self._silent_too_long(silent_s)
            if not started:
                trouble = trouble if trouble.said else self._start(starting_s)
                why = why or self._started_too_long(starting_s)
            self.trouble = trouble
            if why and not self._closed.is_set():
                self._jvm.give_up(why)
                log.error("%s", why)
                self._given_up()
                return

    def _answers(self) -> bool:
        """Ask for what the JVM answers first of all: whether we know its secret."""
        if self._jvm.address is None:
            return not stands_still(self._jvm.process.pid)
        port, secret = self._jvm.address
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), ANSWER_S) as line:
            line.settimeout(ANSWER_S)
            line.sendall(f"A\n{secret}\ne\n".encode())
            return line.recv(64).startswith(b"!y")
        return False

    def _silence(self, silent_s: float) -> Trouble:
        if silent_s < SAID_S:
            return Trouble()
        return Trouble(
            silent_s,
            f"Spark's Java process has not answered for {silent_s:.0f} s{self._how()}."
            f" After {self._bounds.silent_s:g} s it is ended, and the worker restarts.",
        )

    def _start(self, starting_s: float) -> Trouble:
        if starting_s < START_SAID_S:
            return Trouble()
        return Trouble(
            starting_s,
            f"Spark has been starting for {starting_s:.0f} s{self._how()}."
            f" After {self._bounds.start_s:g} s it is ended, and the worker restarts.",
        )

    def _silent_too_long(self, silent_s: float) -> str:
        if silent_s < self._bounds.silent_s:
            return ""
        return (
            f"Spark's Java process did not answer for {silent_s:.0f} s{self._how()}."
            " It was ended, and the worker restarted."
        )

    def _started_too_long(self, starting_s: float) -> str:
        if starting_s < self._bounds.start_s:
            return ""
        return (
            f"Spark did not start within {starting_s:.0f} s{self._how()}. It was ended, and the"
            f" worker restarted. Its log is {self._jvm.log_file}."
        )

    def _how(self) -> str:
        """Say what the kernel knows of it."""
        if stands_still(self._jvm.process.pid):
            return ": it is stopped, by a signal or a debugger"
        return ""
