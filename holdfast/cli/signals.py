"""Ctrl-C and SIGTERM of a command that runs a job."""

import signal
import sys
from collections.abc import Callable
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
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Signals":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def code(self) -> int:
        """Return the exit code of a job that was cancelled."""
        return 128 + (self.asked or signal.SIGINT)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        asked, self.asked = self.asked, number
        if asked or self.cancel is None:
            sys.exit(128 + number)
        screen.print("Cancelling; what is not committed is dropped. Press again to leave at once.")
        self.cancel()
