"""The leader's desk for one term: every write goes over it, guarded by that term.

A leader of a former term can still try to write; the guard makes the store refuse it,
and the desk then closes.  An answer that never came is settled by reading back, never by guessing.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from holdfast.core.election import Election
from holdfast.errors import Fenced, HoldfastError, OutcomeUnknown, Unavailable
from holdfast.master.cluster_time import CLOCK, ClusterTime
from holdfast.master.ports import Ports
from holdfast.store.contract import Delete, Guard, Item, Put, Store

log = logging.getLogger("holdfast")

TERMS = "terms"
KEPT = 50
"""So many are remembered: what an earlier leader has begun is shown under its number."""


class Terms(msgspec.Struct, frozen=True):
    """How many have led, and the terms of the latest of them, the last one last."""

    count: int = 0
    latest: tuple[int, ...] = ()

    def numbers(self) -> dict[int, int]:
        """Return the number of each term that is known."""
        first = self.count - len(self.latest) + 1
        return {term: first + place for place, term in enumerate(self.latest)}

    def then(self, term: int) -> "Terms":
        """Return it with one more leadership."""
        return Terms(self.count + 1, (*self.latest, term)[-KEPT:])


def read(item: Item | None) -> Terms:
    """Return what the store says; one that cannot be read is started again."""
    if item is None:
        return Terms()
    try:
        return msgspec.json.decode(item.value, type=Terms)
    except msgspec.DecodeError as error:
        log.warning("terms are counted from 1 again: %s cannot be read: %s", TERMS, error)
        return Terms()


LEADER = "leader"
CLEANING_MAX = 4
"""So many jobs that are over are cleaned up at a time: thousands may be due at once, and neither
the renewal of the lease nor the commits of the living may wait for them in a line."""


class LeaderStore:
    """Guarded access to the store in one term."""

    def __init__(
        self,
        store: Store,
        ports: Ports,
        term: int,
        standing: Callable[[], Election],
        name: str = "",
        time: ClusterTime | None = None,
    ) -> None:
        self.store = store
        self.ports = ports
        self.term = term
        self.numbers: dict[int, int] = {}
        self.name = name
        self.settings = ports.settings
        self.time = time or ClusterTime(ports.clock)
        self.abandoned = asyncio.Event()
        self.error: BaseException | None = None
        self.cleaning = asyncio.Semaphore(CLEANING_MAX)
        self._standing = standing
        self._late: set[asyncio.Task[None]] = set()

    def abandon(self) -> None:
        """Note that this term is over for us; the master steps down and closes every keeper."""
        self.abandoned.set()

    def refuse(self, error: HoldfastError) -> None:
        """End this term for a reason that the master must say."""
        self.error = error
        self.abandon()

    def watch(self, task: "asyncio.Task[Any]") -> None:
        """Look at how a task of this term ended: a bug in it ends the process, never in silence."""
        if not task.cancelled() and task.exception():
            self.error = self.error or task.exception()
            self.abandon()

    def check(self) -> None:
        """Raise `Fenced` unless this master may act in this term right now."""
        election = self._standing()
        if self.abandoned.is_set():
            raise Fenced("This master has stepped down.")
        if election.term != self.term or not election.may_act(self.ports.clock.now()):
            raise Fenced("This master no longer leads, or has not confirmed its lease lately.")

    async def take_back(self, blob: str) -> None:
        """Drop a blob of ours that no record names, nor will: this term is over.

        The present leader may have swept the blobs of its job already.  Nothing that is closed with
        this term ends the drop; where it fails the blob stays, and does no harm.
        """

        async def drop() -> None:
            with suppress(Unavailable, OutcomeUnknown):
                await self.ports.durable("blob.drop", lambda: self.ports.blobs.drop(blob))

        task = asyncio.ensure_future(drop())
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        await asyncio.shield(task)

    async def drop(self, blob: str) -> None:
        """Remove a blob that is no longer needed, waiting out an outage."""
        while True:
            self.check()
            try:
                await self.ports.durable("blob.drop", lambda: self.ports.blobs.drop(blob))
                return
            except (Unavailable, OutcomeUnknown):
                await self.ports.clock.sleep(self.settings.retry_s)

    async def save(
        self,
        key: str,
        value: bytes,
        revision: int,
        label: str,
        beside: Sequence[Put | Delete] = (),
    ) -> int:
        """Replace a record last changed at `revision`; return its new revision.

        What `beside` adds is part of the same commit.  Raises `Fenced` if this term is
        over or another write came first.
        """
        return await self.write([Guard(key, revision)], [Put(key, value), *beside], key, label)

    async def confirm(self, key: str, revision: int) -> None:
        """Prove that a record is still as we know it, under our term, at this moment."""
        await self.write([Guard(key, revision)], [], key, "confirm")

    @property
    def number(self) -> int:
        """Which leadership this is, for people: a term of its own, counted from 1."""
        return self.numbers.get(self.term, self.term)

    async def count_term(self) -> None:
        """Have this leadership be one more than the last."""
        item = await self.read(TERMS)
        terms = read(item).then(self.term)
        value, before = msgspec.json.encode(terms), item.revision if item else 0
        await self.save(TERMS, value, before, "terms.count")
        self.numbers = terms.numbers()

    async def read_time(self) -> None:
        """Take up the cluster's time from the former leader."""
        self.time.hear(await self.read(CLOCK))

    async def tell_time(self, matters: Callable[[], bool]) -> None:
        """Write the cluster's time down for the next leader, while any job needs it.

        That a term is over is for others to find, who must undo something first.
        """
        time = self.time
        while True:
            if matters() and self._standing().may_act(self.ports.clock.now()):
                time.revision = await self.save(CLOCK, time.written(), time.revision, "clock.tell")
            await self.ports.clock.sleep(self.settings.lease_s / 3)

    async def write(
        self, guards: Sequence[Guard], changes: Sequence[Put | Delete], key: str, label: str
    ) -> int:
        """Commit changes under our term.  `key` is read back if the outcome is unknown."""
        guarded = [Guard(LEADER, self.term), *guards]

        async def commit() -> int | None:
            return await self.store.commit(guarded, changes)

        while True:
            self.check()
            try:
                revision = await self.ports.durable(label, commit)
            except OutcomeUnknown:
                revision = await self._read_back(guarded, changes, key)
                if revision is None:
                    continue
            except Unavailable:
                await self.ports.clock.sleep(self.settings.retry_s)
                continue
            if revision is None:
                raise Fenced(f"{key} was changed by someone else, or this term is over.")
            for change in changes:
                self.ports.wrote(change.key)
            return revision

    async def read(self, key: str) -> Item | None:
        """Read a key, waiting out an outage."""
        while True:
            self.check()
            try:
                return await self.store.get(key)
            except Unavailable:
                await self.ports.clock.sleep(self.settings.retry_s)

    async def read_range(self, prefix: str) -> list[Item]:
        """Read all keys below a prefix, waiting out an outage."""
        while True:
            self.check()
            try:
                return (await self.store.range(prefix))[0]
            except Unavailable:
                await self.ports.clock.sleep(self.settings.retry_s)

    async def _read_back(
        self, guards: Sequence[Guard], changes: Sequence[Put | Delete], key: str
    ) -> int | None:
        """Return the revision if the write turns out to have happened, None if it did not.

        Only this desk writes under this term, so a record that carries our value is ours.
        """
        now = await self.read(key)
        wanted = next((c for c in changes if c.key == key), None)
        before = next((g.revision for g in guards if g.key == key), 0)
        standing = now.revision if now else 0
        if standing == before:
            return None
        if now and isinstance(wanted, Put) and now.value == wanted.value:
            return now.revision
        if now is None and isinstance(wanted, Delete):
            return before
        raise Fenced(f"{key} was changed by someone else.")
