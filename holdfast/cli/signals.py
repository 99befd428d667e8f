"""Ctrl-C and SIGTERM of a command that runs a job."""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from holdfast.cli.terminal import screen


class Signals:
    """While entered, a signal asks for the end of the job; until `cancel` is set there is none.

    Till then a signal is only noted, and `check` ends the command: to raise in the middle of
    anything would lose a process just started, or leave Python's own locks held.  Asked twice,
    the command ends at once, with `SystemExit`.
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

    def check(self) -> None:
        """End the command if a signal has come meanwhile."""
        if self.asked:
            sys.exit(self.code())

    def code(self) -> int:
        """Return the exit code of a job that was cancelled."""
        return 128 + (self.asked or signal.SIGINT)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        asked, self.asked = self.asked, number
        if self.cancel is None:
            return
        if asked:
            sys.exit(128 + number)
        screen.print("Cancelling; what is not committed is dropped. Press again to leave at once.")
        self.cancel()
