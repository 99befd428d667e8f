"""Open the SQLite file of a store: create it, adopt its tables, refuse what is not ours.

Every write is flushed (`synchronous=FULL`), and a machine that was restarted lapses all leases.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

from holdfast.errors import UserError

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

REFUSED = (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError, apsw.AuthError)


def open_file(path: Path, machine: HostInfo, patience_s: float) -> apsw.Connection:
    """Return a connection to a store file; create the file if it is not there yet."""
    _refuse_network(path)
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
