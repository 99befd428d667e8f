"""The SQLite file of a store: blocking, one connection, used by one thread.

Every write is one immediate transaction with `synchronous=FULL`, or one part of a transaction that
several of them share: what was answered survives kill -9 and a loss of power.  Revision, history
and leases are in the file, so any number of processes of one machine may open it.  Lapsed leases
are dropped by the next call, before it does anything else, so no reader ever sees a key whose
lease has lapsed.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.store.contract import (
    Change,
    Compacted,
    Delete,
    Guard,
    HistoryLost,
    Item,
    LeaseLost,
    Put,
)
from holdfast.store.order import prefix_end

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MOUNTS = Path("/proc/self/mountinfo")
NETWORK_KINDS = (
    "nfs", "cifs", "smb", "afs", "ceph", "gluster", "lustre", "beegfs", "gpfs", "fuse.sshfs",
    "fuse.s3fs", "fuse.gcsfuse", "fuse.glusterfs",
)  # fmt: skip


@dataclass(frozen=True)
class HostInfo:
    """A machine as a store sees it: the name of its present boot, and its clock."""

    boot: str
    seconds: Callable[[], float]


def this_machine() -> HostInfo:
    """Return the machine this process runs on."""
    return HostInfo(boot_id(), uptime_s)


def uptime_s() -> float:
    """Return the seconds since this machine started, sleep included where the system reports it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def boot_id() -> str:
    """Return a name of this boot; empty where the system has none."""
    return BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""


def network_kind(folder: Path) -> str | None:
    """Return the kind of network file system a folder is on; None if it is local or unknown."""
    if not MOUNTS.exists():
        return None
    place = os.path.realpath(folder)
    best, kind = "", ""
    for line in MOUNTS.read_text().splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, after.split()[0]
    return kind if kind.startswith(NETWORK_KINDS) else None


APPLICATION_ID = 0x486F6C64
"""`Hold`: marks the file as ours, so that no other SQLite file is taken for a store."""

VERSION = 1
RETRY_S = 0.02

SCHEMA = """
create table items (
    key text primary key, value blob not null, revision integer not null,
    created integer not null, lease integer
) strict;
create index items_by_lease on items (lease) where lease is not null;
create table history (
    revision integer not null, key text not null, value blob, created integer, lease integer,
    primary key (revision, key)
) strict;
create table leases (
    id integer primary key autoincrement, ttl_s real not null, deadline_s real not null
) strict;
create table meta (
    one integer primary key check (one = 1), revision integer not null,
    compacted integer not null, boot text not null, opened_s real not null
) strict;
insert into meta values (1, 0, 0, '', 0);
"""

BROKEN = (apsw.CorruptError, apsw.NotADBError)
REFUSED = (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError, apsw.AuthError)
PASSING = (
    apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError, apsw.NoMemError,
    apsw.ProtocolError, apsw.InterruptError,
)  # fmt: skip


def open_file(path: Path, machine: HostInfo, patience_s: float) -> apsw.Connection:
    """Return a connection to a store file; create the file if it is not there yet."""
    _refuse_network(path)
    with explained(path):
        try:
            _create(path)
            db = apsw.Connection(str(path))
        except (OSError, *REFUSED) as error:
            raise _cannot_open(path, error) from error
        try:
            _prepare(db, path, machine, patience_s)
        except REFUSED as error:
            db.close()
            raise _cannot_open(path, error) from error
        except BaseException:
            db.close()
            raise
    return db


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


def _cannot_open(path: Path, error: Exception) -> UserError:
    reason = error.strerror if isinstance(error, OSError) else error
    return UserError(
        f"The store file {path} cannot be opened: {reason}. Create its folder, and let this user"
        " write there.",
        code="store.open",
    )


def _refuse_network(path: Path) -> None:
    kind = network_kind(path.parent)
    if kind:
        raise UserError(
            f"The store file {path} is on a network file system ({kind}), where SQLite cannot keep"
            " its promises. Use a local folder, or etcd or PostgreSQL as the store.",
            code="store.open",
        )


def _create(path: Path) -> None:
    """Make the file readable by this user alone: records name hosts and people.

    An existing file is not touched: closing it would drop the locks of another store object of
    this process.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return


def _prepare(db: apsw.Connection, path: Path, machine: HostInfo, patience_s: float) -> None:
    db.set_busy_timeout(max(1, round(patience_s * 1_000)))
    if _use_log(db, time.monotonic() + patience_s) != "wal":
        raise UserError(
            f"The file system of {path} cannot carry a write-ahead log. Use another folder.",
            code="store.open",
        )
    db.pragma("synchronous", "full")
    db.pragma("fullfsync", True)
    found = db.pragma("quick_check")
    if found != "ok":
        raise apsw.CorruptError(str(found))
    db.execute("begin immediate")
    try:
        _adopt(db, path)
        _notice_boot(db, machine)
        db.execute("commit")
    finally:
        if db.in_transaction:
            db.execute("rollback")


def _use_log(db: apsw.Connection, deadline: float) -> object:
    """Switch to a write-ahead log.  The switch does not wait for others by itself."""
    while True:
        try:
            return db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)


def _adopt(db: apsw.Connection, path: Path) -> None:
    """Make the tables of a new file; refuse a file that is not ours or of another version."""
    owner = db.pragma("application_id")
    if owner == 0 and db.execute("select count(*) from sqlite_schema").get == 0:
        db.execute(SCHEMA)
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", VERSION)
    elif owner != APPLICATION_ID:
        raise UserError(
            f"{path} is an SQLite file of another program. Name another file.", code="store.open"
        )
    version = db.pragma("user_version")
    if version != VERSION:
        raise UserError(
            f"The store file {path} has version {version}; this Holdfast knows {VERSION}."
            " Use the Holdfast that wrote it, or name another file.",
            code="store.version",
        )


def _notice_boot(db: apsw.Connection, machine: HostInfo) -> None:
    """Lapse all leases if the machine was restarted: its clock began again at 0."""
    boot, opened_s = db.execute("select boot, opened_s from meta").get
    now = machine.seconds()
    if boot != machine.boot or now < opened_s:
        db.execute("update leases set deadline_s = -1")
    db.execute("update meta set boot = ?, opened_s = ?", (machine.boot, now))


Row = tuple[Any, ...]

BETWEEN = "key >= ?1 and (?2 is null or key < ?2)"


class SqliteFile:
    """The open file.  Every method is one transaction; `patience_s` bounds waiting for others."""

    _sharing = False

    def __init__(
        self, path: Path, machine: HostInfo, *, history_revisions: int, patience_s: float
    ) -> None:
        self.path = path
        self.patience_s = patience_s
        self._machine = machine
        self._history_revisions = history_revisions
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
