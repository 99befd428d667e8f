"""The leader's side of real sinks: commits, the last check before the end, and sweeps.

Sinks block, so they run in threads; the calls for one user follow each other, even if the
caller of one was cancelled in the meantime.
"""

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from holdfast.connect.registry import Registry
from holdfast.connect.sink import CommitEvent, CommitId, Committable, Leftovers, Sink, life_of
from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.gather import StagedCommittable
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable, UserError
from holdfast.master.ports import CommitHookRequest, CommitRequest, Incarnation, TableState
from holdfast.model.job import JobPlan, Role
from holdfast.model.tree import Plain
from holdfast.plan.plugins import build_plugin, context_for
from holdfast.plan.record import decode_spec

T = TypeVar("T")
log = logging.getLogger("holdfast")

THREADS = 16
LIVES_KEPT = 5_000
"""How many jobs' sinks are kept built.  One that is forgotten is built again."""

PLANS_KEPT = 200
"""How many job files are kept planned: most jobs are runs of a file that ran before."""

LONG = 1000
"""So many files are not looked at while others wait."""

SHOWN_MAX = 200
LOOK_S = 0.05
SAY_AGAIN_S = 60.0
"""How often the same trouble is written to the log."""


@dataclass
class _Line:
    """The calls for one user: one at a time, in order; and the trouble last spoken of."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    trouble: str = ""
    said_s: float = 0.0


class SinkTables:
    """The `Tables` port on sinks, built from what a job's record keeps of its file."""

    def __init__(self, registry: Registry, unseal: Callable[[str], str] = str) -> None:
        self.registry = registry
        self._unseal = unseal
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="sinks")
        self._planned = lru_cache(PLANS_KEPT)(self._plan)
        self._built: dict[tuple[str, str], dict[str, Sink[Any]]] = {}
        self._lines: dict[tuple[str, str], dict[str, _Line]] = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def admit(self, life: Incarnation, staged: tuple[StagedCommittable, ...]) -> None:
        """Raise UserError for what no sink of this life has staged.

        That is quick, so it is asked here; building sinks, and very many files, take a thread.
        """

        def admit() -> None:
            for one in staged:
                _admit(self._sink(life, one.sink), one, life_of(life.job, life.incarnation))

        if (life.job, life.incarnation) in self._built and not any(map(_is_long, staged)):
            admit()
        else:
            await self._alone(life, "", "looking at what was staged", admit)

    async def read(self, order: CommitRequest) -> TableState:
        """Return nothing: a sink's commit itself knows what it has done before."""
        return TableState(0, 0)

    async def publish(self, version: int, order: CommitRequest) -> bool:
        """Make an order visible.  A sink does nothing for an identifier it has seen."""
        committables = [_committable(s) for s in order.staged]
        identifier = CommitId(order.user, order.number, order.watermark)

        def commit() -> None:
            self._sink(order.life, order.sink).commit(identifier, committables)

        await self._alone(order.life, order.user, f"commit {order.number} to {order.sink}", commit)
        return True

    async def listens(self, life: Incarnation, sinks: tuple[str, ...]) -> bool:
        """Say whether any of these sinks has a listener."""
        if (life.job, life.incarnation) not in self._built:
            await self._alone(life, "", "building its sinks", lambda: _forget(self._sinks(life)))
        return any(self._sink(life, name).listens for name in sinks)

    async def listen(self, order: CommitHookRequest) -> str:
        """Run the hooks of every sink that has one; the state is JSON, what each hook returned."""
        if order.staged is None:
            return order.state  # what was committed was not read: no sink has a hook
        remembered: dict[str, Plain] = json.loads(order.state or "{}")

        def run_hooks() -> None:
            for name in order.sinks:
                sink = self._sink(order.life, name)
                if sink.listens:
                    remembered[name] = sink.listen(_event(order, name), remembered.get(name))

        what = f"what follows commit {order.number} (its listeners)"
        await self._alone(order.life, order.user, what, run_hooks)
        said = {name: state for name, state in sorted(remembered.items()) if state is not None}
        return json.dumps(said, separators=(",", ":")) if said else ""

    async def finish(self, life: Incarnation, rows: Mapping[str, Mapping[str, int]]) -> None:
        """Tell sinks that the input has ended; any of them may refuse the last commit."""

        def finish() -> None:
            for name, counted in rows.items():
                self._sink(life, name).finish(counted)

        await self._alone(life, "", "the last check of the sinks", finish)

    async def sweep(self, life: Incarnation) -> None:
        """Remove what an incarnation has staged and never committed, and forget its sinks."""

        def sweep() -> None:
            for sink in self._sinks(life).values():
                sink.sweep(Leftovers(life.job, life.incarnation))

        await self._alone(life, "", "removing what was staged", sweep)
        self._built.pop((life.job, life.incarnation), None)
        self._lines.pop((life.job, life.incarnation), None)

    def close(self) -> None:
        """Let the threads end; what is under way is not waited for, as if this process had died."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _sink(self, life: Incarnation, name: str) -> Sink[Any]:
        sinks = self._sinks(life)
        if name not in sinks:
            raise UserError(
                f"Job {life.job} has no sink {name}: its file is planned differently than when it"
                " was submitted. Run the version of Holdfast that it was submitted to.",
                code="sink.unknown",
            )
        return sinks[name]

    def _sinks(self, life: Incarnation) -> dict[str, Sink[Any]]:
        """Return a job's sinks by stage id.  Two threads may both build them; either will do."""
        key = (life.job, life.incarnation)
        sinks = self._built.get(key)
        if sinks is None:
            sinks = self._build(life)
            while len(self._built) >= LIVES_KEPT:
                self._built.pop(next(iter(self._built)), None)
            self._built[key] = sinks
        return sinks

    def _plan(self, spec: str) -> tuple[JobPlan, bool]:
        """Return the job that a record describes, and whether it may bring Python."""
        decoded = decode_spec(spec)
        return decoded.job(self.registry), decoded.allow_python

    def _build(self, life: Incarnation) -> dict[str, Sink[Any]]:
        job, allow_python = self._planned(self._unseal(life.spec))
        found: dict[str, Sink[Any]] = {}
        for task in (task for part in job.pipelines for task in part.tasks):
            for stage in (job.stage(s) for s in task.stages if s not in found):
                if stage.role is not Role.SINK:
                    continue
                context = context_for(
                    job, task, stage, life.job, allow_python, life_of(life.job, life.incarnation)
                )
                sink = build_plugin(stage, self.registry, context)
                assert isinstance(sink, Sink)
                found[stage.id] = sink
        return found

    async def _alone(
        self, life: Incarnation, user: str, what: str, call: Callable[[], None]
    ) -> None:
        """Run a blocking call once all earlier ones of this user have ended.

        A call that has begun runs to its end, even if its caller is cancelled: only then may the
        next begin.  A call that has not begun is cancelled.
        """
        line = self._lines.setdefault((life.job, life.incarnation), {}).setdefault(user, _Line())
        begun: list[Future[None]] = []

        async def run() -> None:
            async with line.lock:
                begun.append(self._pool.submit(_explained, call, f"Job {life.job}: {what}"))
                await asyncio.wrap_future(begun[0])

        task = asyncio.ensure_future(run())
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not begun or begun[0].cancel():
                task.cancel()
            raise
        except HoldfastError as error:
            _say(line, f"Job {life.job}: {what} failed: {error}", error)
            raise

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception():
            # The caller has logged it, unless it was cancelled meanwhile.
            log.debug("a call to a sink ended badly: %s", task.exception())


class PatientTables(SinkTables):
    """The sinks of one job that a person waits for.  `error` is what ended the last try.

    Commits are tried as often as the job file says and then given up.  A cluster tries a commit
    for as long as it takes: the rows are owed, and no one waits.
    """

    def __init__(self, registry: Registry, say: Callable[[str], None]) -> None:
        super().__init__(registry)
        self.error: HoldfastError | None = None
        self._tell = say
        self._times = 0
        self._interval_s = 0.0
        self._failed: Counter[str] = Counter()
        self._hurry = False

    def allow(self, times: int, interval_s: float) -> None:
        """Set how often a failed call is made again, and how long to rest before."""
        self._times, self._interval_s = times, interval_s

    def hurry(self) -> None:
        """Make no more tries: the user has cancelled."""
        self._hurry = True

    async def publish(self, version: int, order: CommitRequest) -> bool:
        """Make an order visible."""
        what = f"commit {order.number} to {order.sink}"
        return await self._tried(what, super().publish(version, order))

    async def listen(self, order: CommitHookRequest) -> str:
        """Run the listeners of a commit."""
        return await self._tried(f"the listeners of commit {order.number}", super().listen(order))

    async def finish(self, life: Incarnation, rows: Mapping[str, Mapping[str, int]]) -> None:
        """Tell sinks that the input has ended."""
        await self._tried("finish", super().finish(life, rows))

    async def _tried(self, what: str, call: Awaitable[T]) -> T:
        try:
            done = await call
        except UserError as error:
            self.error = error
            raise
        except (Unavailable, OutcomeUnknown) as error:
            self.error = error
            self._failed[what] += 1
            if self._failed[what] > self._times or self._hurry:
                raise UserError(str(error), code=error.code) from error
            self._tell(
                f"{error} Retry {self._failed[what]} of {self._times} in {self._interval_s:g} s."
            )
            await self._rest()
            raise
        del self._failed[what]
        return done

    async def _rest(self) -> None:
        left_s = self._interval_s
        while left_s > 0 and not self._hurry:
            await asyncio.sleep(min(left_s, LOOK_S))
            left_s -= LOOK_S


def _explained(call: Callable[[], None], what: str) -> None:
    """Run a call; after an unexplained error it is not known whether it had an effect."""
    try:
        call()
    except (UserError, Unavailable, OutcomeUnknown):
        raise
    except Exception as error:
        raise OutcomeUnknown(
            f"{what} ended with {type(error).__name__}: {error}. It is tried again.",
            code="sink.outcome_unknown",
        ) from error


def _say(line: _Line, trouble: str, error: HoldfastError) -> None:
    now = time.monotonic()
    if trouble == line.trouble and now < line.said_s + SAY_AGAIN_S:
        return
    line.trouble, line.said_s = trouble, now
    log.warning(trouble, exc_info=error.__cause__)


def _forget(_built: object) -> None:
    """Ignore what was built: it is kept elsewhere."""


def _event(order: CommitHookRequest, sink: str) -> CommitEvent:
    """Return a commit as the hook of one sink gets it."""
    made = (_committable(s) for s in order.staged or () if s.sink == sink)
    return CommitEvent(
        CommitId(f"{order.user}{sink}", order.number, order.watermark),
        tuple(c for c in made if not c.opening),
        savepoint=order.kind is CheckpointKind.SAVEPOINT,
        final=order.kind is CheckpointKind.FINAL,
    )


def _is_long(staged: StagedCommittable) -> bool:
    content = staged.content.get("content") if isinstance(staged.content, dict) else None
    values = content.values() if isinstance(content, dict) else ()
    return any(isinstance(v, list | str) and len(v) > LONG for v in values)


def _admit(sink: Sink[Any], staged: StagedCommittable, life: str) -> None:
    """Have a sink look at one committable; what it stumbles over is refused, too."""
    try:
        sink.admit([_committable(staged)], life)
    except HoldfastError:
        raise
    except Exception as error:
        raise _unreadable(staged, error) from error


def _committable(staged: StagedCommittable) -> Committable:
    try:
        return msgspec.convert(staged.content, Committable)
    except msgspec.ValidationError as error:
        raise _unreadable(staged, error) from error


def _unreadable(staged: StagedCommittable, error: Exception) -> UserError:
    said = ascii(f"{type(error).__name__}: {error}")[:SHOWN_MAX]
    return UserError(
        f"Sink {staged.sink} refuses what was staged for it: it is no committable ({said})."
        " Nothing was moved or removed. Look at the worker that ran the task.",
        code="sink.committable_refused",
    )
