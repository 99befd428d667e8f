"""Moments inside a commit, where a check may stop, kill or hold whoever makes it.

A moment is just before a call: into the operating system, or to a function that is not Python's
own, be it the sink's or a library's.  They are found by Python's profiling hook, so a sink needs
none of its own.  Of calls that repeat one another only the first counts.  What happens inside a
native library is out of reach; for that, whole processes are frozen at any time.
"""

import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

OUTSIDE = {"posix", "_io", "_socket", "_ssl", "fcntl", "select", "_sqlite3"}
HARMLESS = {"fspath", "getpid", "getcwd", "getenv", "urandom", "lock", "acquire", "release"}
POINTS_MAX = 40


class Points:
    """The moments that one thread passes; at the `at`-th, `act` is called."""

    def __init__(self, at: int = 0, act: Callable[[], None] = lambda: None) -> None:
        self.at = at
        self.act = act
        self.passed: list[str] = []
        self._last = ""

    @contextmanager
    def watching(self) -> "Iterator[Points]":
        """Watch this thread."""
        sys.setprofile(self._hook)
        try:
            yield self
        finally:
            sys.setprofile(None)

    def _hook(self, frame: FrameType, event: str, call: Any) -> None:
        if event == "call":
            name = _python_name(frame)
        else:
            name = _native_name(call) if event == "c_call" else ""
        if not name:
            return
        repeated, self._last = name == self._last, name
        if repeated:
            return
        self.passed.append(name)
        if len(self.passed) == self.at:
            self.act()


class Hold:
    """A moment that a thread waits in until it is let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        self.released.wait()


def spread(passed: Sequence[str], most: int = POINTS_MAX) -> list[int]:
    """Return which moments of those passed to try, counted from 1: all, or as many as there is
    time for, and among these at least one of each kind if possible."""
    if len(passed) <= most:
        return list(range(1, len(passed) + 1))
    kinds = {name: at for at, name in reversed(list(enumerate(passed, 1)))}
    chosen = set(_evenly(sorted(kinds.values()), most))
    rest = [at for at in range(1, len(passed) + 1) if at not in chosen]
    return sorted(chosen | set(_evenly(rest, most - len(chosen))))


def _evenly(listed: Sequence[int], most: int) -> Sequence[int]:
    if len(listed) <= most:
        return listed
    return [listed[n * len(listed) // most] for n in range(most)]


def _python_name(frame: FrameType) -> str:
    """Return the name of a Python function that is entered; nothing if it does not count."""
    module = str(frame.f_globals.get("__name__", ""))
    top = module.partition(".")[0]
    ours = module.startswith("holdfast.testing") or top in ("threading", "__main__")
    minor = frame.f_code.co_name.startswith(("<", "__"))
    if ours or minor or not top or top in sys.stdlib_module_names:
        return ""
    return f"{module}.{frame.f_code.co_name}"


def _native_name(call: Any) -> str:
    """Return the name of a native function that is called; nothing if it does not count."""
    name = str(getattr(call, "__name__", ""))
    module = _module(call)
    top = module.partition(".")[0]
    if not name or name in HARMLESS:
        return ""
    outside = top in OUTSIDE or (top != "builtins" and top not in sys.stdlib_module_names)
    return f"{module}.{name}" if outside else ""


def _module(call: Any) -> str:
    found = getattr(call, "__module__", None)
    if isinstance(found, str):
        return found
    owner = getattr(call, "__self__", None)
    return type(owner).__module__ if owner is not None else "builtins"
