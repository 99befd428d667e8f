"""A store in one SQLite file, for all processes of one machine.

All work on the file is done by one thread, so the event loop never waits for a disk.  Writes that
come while the disk is busy with one share the next transaction: a disk takes as long for twenty
small ones as for one.  Processes
that write at the same time take turns; each waits a bounded time for its turn.  A watch of this
process sees its own commits at once and looks for those of other processes every 50 ms.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.store.bell import Bell, wait
from holdfast.store.contract import Change, Delete, Guard, Item, LeaseLost, Put, Store
from holdfast.store.limits import check_commit, check_key, check_prefix, closed
from holdfast.store.order import by_revision
from holdfast.store.sqlite_file import HostInfo, SqliteFile, this_machine

HISTORY_REVISIONS = 1_000
TIMEOUT_S = 5.0
POLL_S = 0.05
TOGETHER_MAX = 200
"""So many writes share a transaction at most: those of other processes wait meanwhile."""
GRACE_S = 1.0
"""What a call that has got its turn may take on top: a disk is slow, seldom this slow."""

P = ParamSpec("P")
R = TypeVar("R")


WRITES = (
    SqliteFile.commit, SqliteFile.grant_lease, SqliteFile.keep_lease, SqliteFile.revoke_lease,
)  # fmt: skip


@dataclass
class _Call:
    """One call of the file, which its thread makes; `writes`: it may share a transaction."""

    run: Callable[[SqliteFile], Any]
    writes: bool
    deadline_s: float
    answer: "Future[Any]" = field(default_factory=Future)


class SqliteStore:
    """A store in a file.  Created by `open`."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="holdfast-store")
        self._line: deque[_Call] = deque()
        self._file: SqliteFile | None = None
        self._bell = Bell()
        self._closed = False

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        timeout_s: float = TIMEOUT_S,
        history_revisions: int = HISTORY_REVISIONS,
        machine: HostInfo | None = None,
    ) -> "SqliteStore":
        """Open a file; create it if it is not there yet.

        Raises `UserError` if the file is damaged, of another program or version, or not on a
        local file system.
        """
        store = cls(path, timeout_s)

        def opened() -> SqliteFile:
            return SqliteFile(
                path,
                machine or this_machine(),
                history_revisions=history_revisions,
                patience_s=timeout_s,
            )

        try:
            store._file = await asyncio.wrap_future(store._thread.submit(opened))
        finally:
            if store._file is None:
                store._thread.shutdown(wait=False)
        return store

    async def get(self, key: str) -> Item | None:
        """Return a key's current value, or None."""
        check_key(key)
        return await self._read(SqliteFile.get, key)

    async def range(self, prefix: str) -> tuple[list[Item], int]:
        """Return all keys that start with a prefix, sorted, and the revision they are as of."""
        check_prefix(prefix)
        return await self._read(SqliteFile.range, prefix)

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        """Apply all changes if all guards hold; return the revision, or None if one does not."""
        check_commit(guards, changes)
        return await self._write(SqliteFile.commit, guards, changes)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        """Yield changes below a prefix after a revision, one list a revision."""
        check_prefix(prefix)
        while True:
            ring = self._bell.next
            changes, as_of = await self._changes(prefix, after)
            for made in by_revision(changes):
                yield made
            # Not only up to the last change: else history would be searched from there again and
            # again, and be gone one day.
            after = as_of
            await wait(ring, POLL_S)

    async def _changes(self, prefix: str, after: int) -> tuple[list[Change], int]:
        try:
            return await self._read(SqliteFile.changes, prefix, after)
        except Unavailable:
            if self._closed:
                raise
            # Somebody holds the file; the watch looks again.
            return [], after

    async def grant_lease(self, ttl_s: float) -> int:
        """Return a new lease that lapses unless kept within `ttl_s`."""
        return await self._write(SqliteFile.grant_lease, ttl_s)

    async def keep_lease(self, lease: int) -> None:
        """Start the lease's time again."""
        await self._write(SqliteFile.keep_lease, lease)

    async def revoke_lease(self, lease: int) -> None:
        """End a lease at once, with the keys that hang on it."""
        await self._write(SqliteFile.revoke_lease, lease)

    async def close(self) -> None:
        """Release the file, after all earlier calls."""
        if not self._closed:
            self._closed = True
            self._bell.ring()
            assert self._file is not None
            await asyncio.wrap_future(self._thread.submit(self._file.close))
            self._thread.shutdown(wait=False)

    async def _read(
        self, method: Callable[Concatenate[SqliteFile, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        try:
            return await self._run(method, *args, **kwargs)
        except OutcomeUnknown as error:
            # A read drops lapsed leases on its way; the next call will do so as well.
            raise Unavailable(str(error), code=error.code) from error

    async def _write(
        self, method: Callable[Concatenate[SqliteFile, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        result = await self._run(method, *args, **kwargs)
        self._bell.ring()
        return result

    async def _run(
        self, method: Callable[Concatenate[SqliteFile, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run a method in the store's thread, in turn and with a bound."""
        if self._closed:
            raise closed(f"The store file {self._path}")
        deadline_s = time.monotonic() + self._timeout_s
        call = _Call(lambda file: method(file, *args, **kwargs), method in WRITES, deadline_s)
        self._line.append(call)
        self._thread.submit(self._serve)
        try:
            async with asyncio.timeout(self._timeout_s + GRACE_S):
                answer: R = await asyncio.wrap_future(call.answer)
                return answer
        except TimeoutError as error:
            waited = f"The store file {self._path} did not answer in time: its disk is very slow."
            if call.answer.cancelled():
                raise Unavailable(waited, code="store.slow") from error
            raise OutcomeUnknown(waited, code="store.slow") from error

    def _serve(self) -> None:
        """Answer all calls that wait, in order; writes that follow each other share a transaction.

        Runs in the store's thread, once for each call: most find that another has done it all.
        """
        assert self._file is not None
        while self._line:
            calls = [self._line.popleft()]
            while calls[0].writes and self._line and self._line[0].writes:
                if len(calls) == TOGETHER_MAX:
                    break
                calls.append(self._line.popleft())
            # Not those whose callers have gone on without an answer.
            calls = [c for c in calls if c.answer.set_running_or_notify_cancel()]
            if calls:
                # A call that waited for its turn has less time left to wait for other processes.
                self._file.patience_s = min(c.deadline_s for c in calls) - time.monotonic()
                _answer(self._file, calls)


def _answer(file: SqliteFile, calls: list[_Call]) -> None:
    try:
        if calls[0].writes:
            results = file.together([partial(call.run, file) for call in calls])
        else:
            results = [call.run(file) for call in calls]
    except BaseException as error:  # noqa: BLE001  the waiting caller gets it, whatever it is
        for call in calls:
            call.answer.set_exception(error)
        return
    for call, result in zip(calls, results, strict=True):
        if isinstance(result, LeaseLost):
            call.answer.set_exception(result)
        else:
            call.answer.set_result(result)


async def open_url(url: str) -> Store:
    """Open the file that a URL names: `sqlite:PATH`."""
    path = url.removeprefix("sqlite:")
    if not path:
        raise UserError("The store sqlite: names no file. Write sqlite:PATH.", code="store.url")
    return await SqliteStore.open(Path(path))
