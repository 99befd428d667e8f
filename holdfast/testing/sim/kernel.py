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
from collections.abc import Coroutine
from typing import Any

Process = tuple[str, int]
"""A process: its name and how often it has been started."""

PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)

STEPS_MAX = 400_000


class SimLoop(asyncio.BaseEventLoop):
    """The loop.  Time stands still while anything can run, then jumps to the next timer."""

    _scheduled: list[asyncio.TimerHandle]
    _ready: Any

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.steps = 0
        self.dead: set[Process] = set()
        self.errors: list[str] = []
        self._now = 0.0
        self._paused: dict[Process, float] = {}
        self._deferred: list[tuple[float, asyncio.Handle]] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self.set_exception_handler(self._note_error)
        self.set_task_factory(self._make_task)  # type: ignore[arg-type]

    def time(self) -> float:
        """Return virtual seconds since the start."""
        return self._now

    def kill(self, process: Process) -> None:
        """End a process at once: nothing of it runs again."""
        self.dead.add(process)

    def pause(self, process: Process, seconds: float) -> None:
        """Let a process stand still for a while, as SIGSTOP does."""
        until = self._now + seconds
        self._paused[process] = until
        contextvars.Context().run(self.call_at, until, lambda: None)

    def resume_all(self) -> None:
        """Wake every paused process."""
        self._paused.clear()

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
        for task in self._tasks:
            if not task.done():
                with contextlib.suppress(RuntimeError):  # a `finally` that awaits
                    task.get_coro().close()
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
        self._collect()
        ready = self._ready
        if not ready:
            return
        chosen = self.random.randrange(len(ready)) if len(ready) > 1 else 0
        if chosen:
            ready[0], ready[chosen] = ready[chosen], ready[0]
        handle = ready.popleft()
        if handle._cancelled or self._held_back(handle):
            return
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise RuntimeError("the simulation does not come to rest")
        handle._run()

    def _collect(self) -> None:
        """Move what is due to the ready queue; jump in time if nothing else can run."""
        scheduled, ready = self._scheduled, self._ready
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
        if not ready:
            if not scheduled:
                raise RuntimeError("nothing can ever run again")
            self._now = max(self._now, scheduled[0].when())
        while scheduled and scheduled[0].when() <= self._now + 1e-9:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False  # type: ignore[attr-defined]
            if not handle._cancelled:
                ready.append(handle)
        if self._deferred:
            awake = [h for until, h in self._deferred if not self._asleep(h, until)]
            self._deferred = [(u, h) for u, h in self._deferred if self._asleep(h, u)]
            ready.extend(awake)

    def _asleep(self, handle: asyncio.Handle, until: float) -> bool:
        process: Process | None = handle._context.get(PROCESS)  # type: ignore[attr-defined]
        return until > self._now and process in self._paused

    def _held_back(self, handle: asyncio.Handle) -> bool:
        """Drop what belongs to a dead process; put off what belongs to a paused one."""
        process: Process | None = handle._context.get(PROCESS)  # type: ignore[attr-defined]
        if process is None:
            return False
        if process in self.dead:
            return True
        until = self._paused.get(process)
        if until is None:
            return False
        if until > self._now:
            self._deferred.append((until, handle))
            return True
        del self._paused[process]
        return False

    def _note_error(self, _loop: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if error is not None:
            self.errors.append(f"{type(error).__name__}: {error}")


class SimClock:
    """The clock port on virtual time."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop

    def now(self) -> float:
        """Return virtual seconds."""
        return self.loop.time()

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time."""
        await asyncio.sleep(seconds)
