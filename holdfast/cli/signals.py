"""Ctrl-C and SIGTERM of a command that runs a job."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from holdfast.cli.terminal import screen


class Signals:
    """While entered, a signal asks for the end of the job; there is none yet until `cancel` is set.

    Without a job, or asked twice, it ends the command: with `SystemExit`, so that what was started
    is stopped on the way out.
    """

    def __init__(self) -> None:
        self.cancel: Callable[[], None] | None = None
        self.asked = 0
        self._held = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Signals":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Hear a signal only when this is done: what is being started must be known to be ended."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def check(self) -> None:
        """End the command if a signal was held back."""
        if self.asked:
            sys.exit(self.code())

    def code(self) -> int:
        """Return the exit code of a job that was cancelled."""
        return 128 + (self.asked or signal.SIGINT)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        asked, self.asked = self.asked, number
        if self._held:
            return
        if asked or self.cancel is None:
            sys.exit(128 + number)
        screen.print("Cancelling; what is not committed is dropped. Press again to leave at once.")
        self.cancel()
