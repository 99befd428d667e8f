"""An event loop with virtual time, a seeded choice among what can run, and processes to kill.

Production asyncio runs callbacks first come, first served; here any runnable one may be next, so
that every legal order is explored.  A killed process's callbacks never run again, and its
`finally` blocks neither, as with kill -9.  A paused one's are put off until it wakes.
"""

import asyncio
import contextlib
import contextvars
import heapq
import random
import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

Process = tuple[str, int]
"""A process: its name and how often it has been started."""

PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)

STEPS_MAX = 400_000


class Handle:
    """A callback that waits for its turn, and the process it belongs to."""

    __slots__ = ("args", "callback", "context", "gone", "process")

    def __init__(
        self, callback: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context
    ) -> None:
        self.callback = callback
        self.args = args
        self.context = context
        self.process = context.get(PROCESS)
        self.gone = False

    def cancel(self) -> None:
        """Never run."""
        self.gone = True

    def cancelled(self) -> bool:
        """Say whether it was cancelled."""
        return self.gone


class SimLoop(asyncio.BaseEventLoop):
    """The loop.  Time stands still while anything can run, then jumps to the next timer."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.steps = 0
        self.in_order = False
        self.dead: set[Process] = set()
        self.errors: list[str] = []
        self._now = 0.0
        self._runnable: list[Handle] = []
        self._timers: list[tuple[float, int, Handle]] = []
        self._timed = 0
        self._paused: dict[Process, float] = {}
        self._deferred: list[Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._world = contextvars.Context()
        self.set_exception_handler(self._note_error)
        self.set_task_factory(self._make_task)  # type: ignore[arg-type]

    def time(self) -> float:
        """Return virtual seconds since the start."""
        return self._now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> Handle:
        """Let a callback run at this moment, in any order with the others."""
        handle = Handle(callback, args, context or contextvars.copy_context())
        self._runnable.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., Any],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Handle:
        """Let a callback run after some virtual seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., Any],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Handle:
        """Let a callback run at a virtual moment."""
        handle = Handle(callback, args, context or contextvars.copy_context())
        self._timed += 1
        heapq.heappush(self._timers, (when, self._timed, handle))
        return handle

    def in_world(self, delay: float, callback: Callable[..., Any], *args: Any) -> Handle:
        """Let something happen outside of every process: it happens whoever has died."""
        return self.call_at(self._now + delay, callback, *args, context=self._world)

    def run_until_complete(self, future: Any) -> Any:
        """Run until a future is done."""
        with _kills_expected():
            return super().run_until_complete(future)

    def kill(self, process: Process) -> None:
        """End a process at once: nothing of it runs again."""
        self.dead.add(process)

    def pause(self, process: Process, seconds: float) -> None:
        """Let a process stand still for a while, as SIGSTOP does."""
        self._paused[process] = self._now + seconds
        self.in_world(seconds, self._wake)

    def resume(self, process: Process) -> None:
        """Wake one paused process."""
        self._paused.pop(process, None)
        self._wake()

    def resume_all(self) -> None:
        """Wake every paused process."""
        self._paused.clear()
        self._wake()

    def spawn(self, process: Process | None, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine as part of a process; None is the world itself, which never dies."""
        context = contextvars.copy_context()
        context.run(PROCESS.set, process)
        return self.create_task(work, context=context)

    def bugs(self) -> list[str]:
        """Return what tasks died of, other than on purpose."""
        ended = [t for t in self._tasks if t.done() and not t.cancelled() and t.exception()]
        return sorted({f"{type(t.exception()).__name__}: {t.exception()}" for t in ended})

    def end(self) -> None:
        """Let go of everything that still waits, the dead included, and close."""
        with _kills_expected():
            for task in self._tasks:
                if not task.done():
                    with contextlib.suppress(RuntimeError):  # a `finally` that awaits
                        task.get_coro().close()
            self._runnable.clear()
            self._timers.clear()
            self._deferred.clear()
        self.close()

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any
    ) -> asyncio.Task[Any]:
        """Keep every task: a dead process's must not be collected, or its `finally` would run."""
        task = asyncio.Task(work, loop=loop, **more)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        self._tasks.append(task)
        return task

    def _process_events(self, _events: object) -> None:
        """No selector, no events."""

    def _write_to_self(self) -> None:
        """No selector to wake."""

    def _run_once(self) -> None:
        """Run callbacks, any runnable one next, until the loop is told to stop."""
        runnable = self._runnable
        while not self._stopping:  # type: ignore[attr-defined]
            if not runnable:
                self._advance()
            handle = self._choose(runnable)
            if handle.gone or (handle.process is not None and self._held_back(handle)):
                continue
            self.steps += 1
            if self.steps > STEPS_MAX:
                raise RuntimeError("the simulation does not come to rest")
            self._call(handle)

    def _choose(self, runnable: list[Handle]) -> Handle:
        """Take any runnable callback, or the oldest where a plan asks for order."""
        if self.in_order or len(runnable) == 1:
            return runnable.pop(0)
        chosen = int(self.random.random() * len(runnable))
        handle, runnable[chosen] = runnable[chosen], runnable[-1]
        runnable.pop()
        return handle

    def _call(self, handle: Handle) -> None:
        try:
            handle.context.run(handle.callback, *handle.args)
        except Exception as error:  # noqa: BLE001 -- as asyncio does; the oracle reports it
            self.errors.append(f"{type(error).__name__}: {error}")

    def _advance(self) -> None:
        """Nothing can run: jump to the next timer, and make runnable what is due then."""
        timers, runnable = self._timers, self._runnable
        while timers and timers[0][2].gone:
            heapq.heappop(timers)
        if not timers:
            raise RuntimeError("nothing can ever run again")
        self._now = max(self._now, timers[0][0])
        due = self._now + 1e-9
        while timers and timers[0][0] <= due:
            runnable.append(heapq.heappop(timers)[2])

    def _held_back(self, handle: Handle) -> bool:
        """Drop what belongs to a dead process; put off what belongs to a paused one."""
        process = handle.process
        assert process is not None
        if process in self.dead:
            return True
        if not self._paused:
            return False
        until = self._paused.get(process)
        if until is None or until <= self._now:
            return False
        self._deferred.append(handle)
        return True

    def _wake(self) -> None:
        """Look again at everything that was put off."""
        self._runnable += self._deferred
        self._deferred.clear()

    def _note_error(self, _loop: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self.errors.append(f"{type(error).__name__}: {error}")


@contextlib.contextmanager
def _kills_expected() -> Iterator[None]:
    """What was prepared and never begun when its process or its term ended is no mistake."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        yield


class SimClock:
    """The clock port on virtual time."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop

    def now(self) -> float:
        """Return virtual seconds."""
        return self.loop.time()

    def date(self) -> float:
        """Return a date that jumps by hours, forth and back: nothing may depend on it."""
        hours = int(self.loop.time()) * 7919 % 5 - 2
        return 1.8e9 + self.loop.time() + hours * 3600

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(seconds)
