"""A thread that stages slices for a task, one at a time, while the task's own thread looks on."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


class StagingThread(Generic[T]):
    """One piece of work at a time.  The thread begins with the first one, and lives until `close`.

    It is kept, because each thread that talks to Spark has a connection and a thread in the JVM.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._orders: SimpleQueue[Callable[[], T] | None] = SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._made: T | None = None
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def begin(self, work: Callable[[], T]) -> None:
        """Have something made.  What was made before must have been taken."""
        assert self._idle.is_set() and self._made is None and self._error is None
        self._idle.clear()
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name=self._name, daemon=True)
            self._thread.start()
        self._orders.put(work)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until nothing is being made; say whether that is so."""
        return self._idle.wait(seconds)

    def take(self) -> T:
        """Wait, and return what was made, or raise why it could not be."""
        self.wait()
        made, error = self._made, self._error
        self._made = self._error = None
        if error is not None:
            raise error
        assert made is not None, "nothing was begun"
        return made

    def close(self) -> None:
        """Let the thread end."""
        self._orders.put(None)

    def _live(self) -> None:
        while work := self._orders.get():
            try:
                self._made = work()
            except BaseException as error:  # noqa: BLE001  whoever takes it hears of it
                self._error = error
            finally:
                self._idle.set()
