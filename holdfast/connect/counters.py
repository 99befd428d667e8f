"""Counters that tasks add to inside Spark's Python workers.

Spark keeps every accumulator that was ever made, so a stream that made one for each slice would
grow for ever.  They are lent out instead, and count on from where the last one left them.
"""

import threading
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext

_spare: "WeakKeyDictionary[SparkContext, list[Accumulator[int]]]" = WeakKeyDictionary()
_lock = threading.Lock()


class Counter:
    """What tasks have added up so far: those of them that have ended.  Any thread may look."""

    def __init__(self, context: "SparkContext") -> None:
        self._context = context
        self._total: int | None = None
        with _lock:
            found = _spare.setdefault(context, [])
            self.accumulator = found.pop() if found else context.accumulator(0)
        self._began_at = self.accumulator.value

    @property
    def value(self) -> int:
        """The sum."""
        if self._total is not None:
            return self._total
        return self.accumulator.value - self._began_at

    def close(self) -> None:
        """Count no further; the sum stays.  May be repeated."""
        with _lock:
            if self._total is None:
                self._total = self.accumulator.value - self._began_at
                _spare[self._context].append(self.accumulator)
