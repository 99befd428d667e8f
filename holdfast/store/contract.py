"""The store contract: what the control plane may rely on, and nothing more.

A store is an ordered map from text keys to bytes with one revision counter.  `commit` is the only
way to write: it checks guards and applies changes as one step, or does nothing.  Leadership falls
out of it: the master that creates the leader key under a lease leads, the revision of that commit
is the term, and every later write of the leader is guarded by that key still having that revision.
A deposed leader can therefore send what it likes; nothing of it is applied.

Reads are linearizable: a read that starts after a commit was answered sees it.  Time is the
store's own and never goes back; no client's wall clock decides anything.

Keys are non-empty text without the character NUL, sorted by code point.  Keys and commits beyond
the limits below are refused with `UserError` before anything is sent, by every store alike.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.errors import HoldfastError

VALUE_BYTES_MAX = 1_000_000
"""The largest value a record may have; larger content belongs into a blob."""

KEY_BYTES_MAX = 1_000
"""The longest key, in UTF-8.  PostgreSQL indexes no more than 2,700 bytes."""

COMMIT_BYTES_MAX = 1_400_000
"""All keys and values of one commit together.  etcd takes 1.5 MiB in one request."""

COMMIT_KEYS_MAX = 128
"""The most guards, and the most changes, of one commit.  etcd takes no more."""


class LeaseLost(HoldfastError):
    """The lease has lapsed or was revoked; keys that hung on it are gone."""


class Compacted(HoldfastError):
    """The history asked for is no longer kept; read the range again and watch from there."""


class HistoryLost(HoldfastError):
    """The store went back: commits that it had answered are gone, by a failover or a restore.

    Revisions are being given out a second time, so guards mean nothing any more: stop leading and
    tell a person.  A client of a server that noticed this refuses everything from then on; a new
    client starts afresh.
    """


@dataclass(frozen=True, slots=True)
class Item:
    """A key's value, the revision that last changed it and the one that created it."""

    key: str
    value: bytes
    revision: int
    created: int
    lease: int | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition of a commit: a key was last changed at this revision.  0: it does not exist."""

    key: str
    revision: int


@dataclass(frozen=True, slots=True)
class Put:
    """Set a key.  With a lease, the key vanishes when the lease lapses."""

    key: str
    value: bytes
    lease: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a key, if it is there."""

    key: str


@dataclass(frozen=True, slots=True)
class Change:
    """One key as a watch sees it change; `item` is None where it was removed."""

    key: str
    item: Item | None
    revision: int


class Store(Protocol):
    """A store.  One object serves one process; every method may be called concurrently.

    Any method may raise `Unavailable`.  From `commit` and the lease methods that means nothing was
    done; where it cannot be known whether something was done they raise `OutcomeUnknown`, and the
    caller reads back before it decides anything.  No call waits without a bound.  A call whose
    caller is cancelled may still be carried out.  A closed store is `Unavailable`.
    """

    async def get(self, key: str) -> Item | None:
        """Return a key's current value, or None."""

    async def range(self, prefix: str) -> tuple[list[Item], int]:
        """Return all keys that start with a prefix, sorted, and the revision they are as of."""

    async def commit(self, guards: Sequence[Guard], changes: Sequence[Put | Delete]) -> int | None:
        """Apply all changes if all guards hold; return the revision, or None if one does not.

        The revision is a new one if anything changed, and the present one if nothing did: a commit
        without changes is a read that holds only while its guards do.  One commit names a key once.
        Raises `LeaseLost`, and changes nothing, if all guards hold but a put's lease is gone.
        """

    def watch(self, prefix: str, after: int) -> AsyncGenerator[list[Change], None]:
        """Yield changes below a prefix after a revision, one list a revision, none skipped.

        A list is sorted by key.  Continues by itself after an outage.  Raises `Compacted` where
        history is missing.  Wrap it in `contextlib.aclosing`: it holds a connection.
        """

    async def grant_lease(self, ttl_s: float) -> int:
        """Return a new lease that lapses unless kept within `ttl_s`; never the same one again.

        It never lapses early.  It may last longer: etcd counts whole seconds, two at least, and
        starts the time again when its leader changes.
        """

    async def keep_lease(self, lease: int) -> None:
        """Start the lease's time again.  Raises `LeaseLost` if it has lapsed."""

    async def revoke_lease(self, lease: int) -> None:
        """End a lease at once, with the keys that hang on it, in one revision.  Repeatable."""

    async def close(self) -> None:
        """Release connections and files.  Repeatable."""
