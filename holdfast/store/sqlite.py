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
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.store.bell import Bell, wait
from holdfast.store.contract import (
    Change,
    Compacted,
    Delete,
    Guard,
    HistoryLost,
    Item,
    LeaseLost,
    Put,
    Store,
)
from holdfast.store.limits import check_commit, check_key, check_prefix, closed
from holdfast.store.order import by_revision, prefix_end
from holdfast.store.sqlite_file import HostInfo, open_file, this_machine

HISTORY_REVISIONS = 1_000
TIMEOUT_S = 5.0
POLL_S = 0.05
TOGETHER_MAX = 200
"""So many writes share a transaction at most: those of other processes wait meanwhile."""
GRACE_S = 1.0
"""What a call that has got its turn may take on top: a disk is slow, seldom this slow."""

P = ParamSpec("P")
R = TypeVar("R")
Row = tuple[Any, ...]

BROKEN = (apsw.CorruptError, apsw.NotADBError)
PASSING = (
    apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError, apsw.NoMemError,
    apsw.ProtocolError, apsw.InterruptError,
)  # fmt: skip

BETWEEN = "key >= ?1 and (?2 is null or key < ?2)"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite says into what the caller can do about it."""
    try:
        yield
    except BROKEN as error:
        raise UserError(
            f"The store file {path} is damaged: {error}. Stop Holdfast, move the file and its -wal"
            " and -shm files away, and restore a backup of all three.",
            code="store.damaged",
        ) from error
    except PASSING as error:
        raise Unavailable(
            f"The store file {path} cannot be used now: {error}.", code="store.busy"
        ) from error


class SqliteFile:
    """The open file: blocking, one connection, used by one thread.

    Every method is one immediate transaction, or one part of a transaction that several share: what
    was answered survives kill -9 and a loss of power.  Revision, history and leases are in the
    file, so any number of processes of one machine may open it.  Lapsed leases are dropped by the
    next call, before it does anything else, so no reader ever sees a key whose lease has lapsed.
    `patience_s` bounds waiting for others.
    """

    _sharing = False

    def __init__(
        self, path: Path, machine: HostInfo, *, history_revisions: int, patience_s: float
    ) -> None:
        self.path = path
        self.patience_s = patience_s
        self._machine = machine
        self._history_revisions = history_revisions
        with explained(path):
            self._db = open_file(path, machine, patience_s)

    def get(self, key: str) -> Item | None:
        """Return a key's current value, or None."""
        with explained(self.path):
            self._settle()
            row = self._one("select * from items where key = ?", key)
        return Item(*row) if row else None

    def range(self, prefix: str) -> tuple[list[Item], int]:
        """Return all keys that start with a prefix, and the revision they are as of."""
        select = f"select * from items where {BETWEEN} order by key"
        with explained(self.path):
            self._settle()
            with self._snapshot():
                rows = self._rows(select, prefix, prefix_end(prefix))
                (revision,) = self._row("select revision from meta")
        return [Item(*row) for row in rows], revision

    def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        """Apply all changes if all guards hold; return the revision, or None if one does not."""
        with explained(self.path), self._transaction():
            if all(self._holds(guard) for guard in guards):
                for change in changes:
                    self._check_lease(change)
                return self._apply(changes)
        return None

    def changes(self, prefix: str, after: int) -> tuple[list[Change], int]:
        """Return what changed below a prefix after a revision, and up to which that is all."""
        select = f"select * from history where {BETWEEN} and revision > ?3 order by revision, key"
        with explained(self.path):
            self._settle()
            with self._snapshot():
                revision, compacted = self._row("select revision, compacted from meta")
                rows = self._rows(select, prefix, prefix_end(prefix), after)
        if after < compacted:
            raise Compacted(f"history up to {compacted} is gone; {after} was asked for")
        if after > revision:
            raise HistoryLost(f"revision {after} was asked for, {self.path} is at {revision}")
        return [_change(*row) for row in rows], revision

    def grant_lease(self, ttl_s: float) -> int:
        """Return a new lease."""
        insert = "insert into leases (ttl_s, deadline_s) values (?, ?) returning id"
        with explained(self.path), self._transaction():
            lease: int = self._row(insert, float(ttl_s), self._machine.seconds() + ttl_s)[0]
        return lease

    def keep_lease(self, lease: int) -> None:
        """Start the lease's time again."""
        update = "update leases set deadline_s = ttl_s + ? where id = ? returning id"
        with explained(self.path), self._transaction():
            kept = self._one(update, self._machine.seconds(), lease)
        if kept is None:
            raise LeaseLost(f"lease {lease} has lapsed")

    def revoke_lease(self, lease: int) -> None:
        """End a lease, with the keys that hang on it."""
        with explained(self.path), self._transaction():
            self._rows("update leases set deadline_s = -1 where id = ?", lease)
            self._drop_lapsed()

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    def _holds(self, guard: Guard) -> bool:
        row = self._one("select revision from items where key = ?", guard.key)
        return (row[0] if row else 0) == guard.revision

    def _check_lease(self, change: Put | Delete) -> None:
        if isinstance(change, Delete) or change.lease is None:
            return
        if self._one("select 1 from leases where id = ?", change.lease) is None:
            raise LeaseLost(f"lease {change.lease} of {change.key!a} is gone")

    def _apply(self, changes: Sequence[Put | Delete]) -> int:
        (present,) = self._row("select revision from meta")
        revision: int = present + 1
        done = [self._write(change, revision) for change in changes]
        if not any(done):
            return revision - 1
        update = "update meta set revision = ?, compacted = max(compacted, ?) returning compacted"
        (compacted,) = self._row(update, revision, revision - self._history_revisions)
        self._rows("delete from history where revision <= ?", compacted)
        return revision

    def _write(self, change: Put | Delete, revision: int) -> bool:
        """Write one change and its history; return whether it changed anything."""
        if isinstance(change, Delete):
            gone = self._one("delete from items where key = ? returning key", change.key)
            row: Row | None = (*gone, None, None, None) if gone else None
        else:
            row = self._row(
                "insert into items values (?1, ?2, ?3, ?3, ?4) on conflict (key) do update set"
                " value = excluded.value, revision = excluded.revision, lease = excluded.lease"
                " returning key, value, created, lease",
                change.key, change.value, revision, change.lease,
            )  # fmt: skip
        if row:
            self._rows("insert into history values (?, ?, ?, ?, ?)", revision, *row)
        return row is not None

    def _settle(self) -> None:
        """Drop lapsed leases, if there are any, before a read."""
        if self._lapsed():
            with self._transaction():
                pass

    def _lapsed(self) -> list[int]:
        now = self._machine.seconds()
        return [
            lease for (lease,) in self._rows("select id from leases where deadline_s <= ?", now)
        ]

    def _drop_lapsed(self) -> None:
        keys: list[str] = []
        for lease in self._lapsed():
            keys += [key for (key,) in self._rows("select key from items where lease = ?", lease)]
            self._rows("delete from leases where id = ?", lease)
        self._apply([Delete(key) for key in keys])

    def together(self, writes: Sequence[Callable[[], Any]]) -> list[Any]:
        """Do several writes in one transaction, which the disk has to confirm once.

        Returns what each returned, or the `LeaseLost` it raised; any other error is of all.
        """
        with explained(self.path), self._transaction():
            self._sharing = True
            try:
                return [_or_lost(write) for write in writes]
            finally:
                self._sharing = False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._sharing:
            with self._db:  # a savepoint
                yield
            return
        self._db.set_busy_timeout(self._patience_ms())
        self._db.execute("begin immediate")
        try:
            self._drop_lapsed()
            yield
        except BaseException:
            self._roll_back()
            raise
        try:
            self._db.execute("commit")
        except apsw.Error as error:
            # The log may hold it already, and then it counts after the next crash.
            self._roll_back()
            raise OutcomeUnknown(
                f"The store file {self.path} did not confirm a write: {error}. Is the disk full?",
                code="store.commit",
            ) from error

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        self._db.execute("begin")
        try:
            yield
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        # SQLite has rolled back by itself after some errors.
        if self._db.in_transaction:
            self._db.execute("rollback")

    def _rows(self, sql: str, *values: Any) -> list[Row]:
        return self._db.execute(sql, values).fetchall()

    def _one(self, sql: str, *values: Any) -> Row | None:
        rows = self._rows(sql, *values)
        return rows[0] if rows else None

    def _row(self, sql: str, *values: Any) -> Row:
        row = self._one(sql, *values)
        assert row is not None, sql
        return row

    def _patience_ms(self) -> int:
        return max(1, round(self.patience_s * 1_000))


def _or_lost(write: Callable[[], Any]) -> Any:
    try:
        return write()
    except LeaseLost as lost:
        return lost


def _change(
    revision: int, key: str, value: bytes | None, created: int, lease: int | None
) -> Change:
    item = None if value is None else Item(key, value, revision, created, lease)
    return Change(key, item, revision)


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
