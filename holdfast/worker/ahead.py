"""A second thread of a task: it makes the next slice ready while Spark is busy with one.

It works only while the task's own thread waits for Spark, so connectors never see two threads at
once in one object's `plan`, `read` and `committed`.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger("holdfast")


class Ahead(Generic[T]):
    """One piece of work at a time.  The thread begins with the first one, and lives until `close`.

    It is kept, because each thread that talks to Spark has a connection and a thread in the JVM.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._orders: SimpleQueue[Callable[[], T | None] | None] = SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._made: T | None = None
        self._thread: threading.Thread | None = None

    def begin(self, work: Callable[[], T | None]) -> None:
        """Have something made; what was made before and not taken is gone."""
        self.wait()
        self._made = None
        self._idle.clear()
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name=self._name, daemon=True)
            self._thread.start()
        self._orders.put(work)

    def wait(self) -> None:
        """Wait until nothing is being made."""
        self._idle.wait()

    def take(self) -> T | None:
        """Return what was made, once; None if there is nothing, or it could not be made."""
        self.wait()
        made, self._made = self._made, None
        return made

    def close(self) -> None:
        """Let the thread end."""
        self._orders.put(None)

    def _live(self) -> None:
        while work := self._orders.get():
            try:
                self._made = work()
            except Exception as error:  # noqa: BLE001  made again in its turn, where it counts
                log.info("%s could not be made ready and waits for its turn: %s", self._name, error)
            finally:
                self._idle.set()
