"""A master: stand by, campaign, lead, step down; over and over until it is stopped."""

import asyncio
from dataclasses import dataclass

import msgspec

from holdfast.core import election
from holdfast.core.election import Election, ElectionWon, LeadershipLost, LeaseConfirmed
from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.master.cluster_time import CLOCK, ClusterTime
from holdfast.master.leader import Leader
from holdfast.master.leader_store import LEADER, LeaderStore
from holdfast.master.ports import Ports
from holdfast.master.records import RecordUnreadable
from holdfast.master.wait import wait
from holdfast.store.contract import Guard, HistoryLost, LeaseLost, Put, Store


@dataclass(frozen=True, slots=True)
class Mark:
    """What the leader key holds: who leads, and where it is reached.

    It is unique to one campaign, so that an answer that never came can be settled by reading it.
    """

    name: str
    incarnation: str
    campaign: int
    url: str = ""


def read_mark(value: bytes) -> Mark:
    """Read the leader key."""
    return msgspec.json.decode(value, type=Mark)


class Master:
    """One master process.  `leader` is what it does while it leads, else None.

    `refusal` says why it will not lead though it could; empty if there is no such reason.
    """

    def __init__(
        self, name: str, incarnation: str, store: Store, ports: Ports, url: str = ""
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.url = url
        self.store = store
        self.ports = ports
        self.election = Election(ports.settings.lease_s)
        self.time = ClusterTime(ports.clock)
        self.leader: Leader | None = None
        self.refusal = ""
        self._campaigns = 0
        self._stopping = False

    def stop(self) -> None:
        """Step down, let another lead at once, and have `run` return."""
        self._stopping = True
        if self.leader:
            self.leader.desk.abandon()

    async def run(self) -> None:
        """Be a master until this process is stopped."""
        while not self._stopping:
            try:
                rest_s = await self._serve_term()
            except HistoryLost as error:
                # Numbers are being given out a second time; only a person can say what to trust.
                self.refusal = str(error)
                return
            await self.ports.clock.sleep(rest_s)

    async def _serve_term(self) -> float:
        """Campaign once and lead if that worked; return how long to rest before the next try."""
        lease = await self._campaign()
        if lease is None:
            return self.ports.settings.campaign_s
        self.refusal = ""
        try:
            await self._lead(lease)
        except RecordUnreadable as error:
            self.refusal = str(error)
        finally:
            self._step_down()
        await self._release(lease)
        # A master that can read the record should be first next time.
        return self.ports.settings.lease_s if self.refusal else 0.0

    async def _campaign(self) -> int | None:
        """Try to become leader; return the lease if that worked."""
        self._campaigns += 1
        mark = msgspec.json.encode(Mark(self.name, self.incarnation, self._campaigns, self.url))
        asked_s = self.ports.clock.now()
        try:
            if await self.store.get(LEADER):
                self.time.hear(await self.store.get(CLOCK))
                return None
            lease = await self.ports.durable(
                "leader.lease", lambda: self.store.grant_lease(self.ports.settings.lease_s)
            )
            try:
                term = await self.ports.durable(
                    "leader.elect",
                    lambda: self.store.commit([Guard(LEADER, 0)], [Put(LEADER, mark, lease)]),
                )
            except OutcomeUnknown:
                now = await self.store.get(LEADER)
                term = now.revision if now and now.value == mark else None
        except (Unavailable, OutcomeUnknown):
            return None
        if term is None:
            return None
        self.election = election.step(self.election, ElectionWon(term, asked_s))
        return lease

    async def _lead(self, lease: int) -> None:
        """Lead until the lease is lost or could not be confirmed in time."""
        standing = lambda: self.election  # noqa: E731
        desk = LeaderStore(
            self.store, self.ports, self.election.term, standing, self.name, self.time
        )  # fmt: skip
        self.leader = Leader(desk)
        begun = asyncio.ensure_future(self._begin(self.leader))
        begun.add_done_callback(desk.watch)
        try:
            while not desk.abandoned.is_set() and not self._stopping:
                kept = await self._confirm(lease)
                if not self.election.may_act(self.ports.clock.now()):
                    return
                # One answer that never came must not cost the term: ask again soon.
                settings = self.ports.settings
                pause_s = settings.lease_s / 6 if kept else settings.retry_s / 6
                await wait(self.ports.clock, desk.abandoned, pause_s)
        finally:
            begun.cancel()
        if desk.error:
            raise desk.error  # a bug: better a dead master than one that does half its work

    async def _begin(self, leader: Leader) -> None:
        await leader.until_fenced(leader.begin)

    async def _confirm(self, lease: int) -> bool:
        """Keep the lease; say whether the store answered."""
        asked_s = self.ports.clock.now()
        try:
            await self.ports.durable("leader.keep", lambda: self.store.keep_lease(lease))
        except LeaseLost:
            self.election = election.step(self.election, LeadershipLost())
            return True
        except (Unavailable, OutcomeUnknown):
            return False  # the time since the last confirmation runs on and will end the term
        self.election = election.step(self.election, LeaseConfirmed(asked_s))
        return True

    def _step_down(self) -> None:
        self.election = election.step(self.election, LeadershipLost())
        if self.leader:
            self.leader.desk.abandon()
            self.leader.close()
            self.leader = None

    async def _release(self, lease: int) -> None:
        """Let another lead at once instead of after the lease."""
        try:
            await self.ports.durable("leader.release", lambda: self.store.revoke_lease(lease))
        except (Unavailable, OutcomeUnknown, LeaseLost):
            return  # it lapses by itself
