"""What only etcd must get right: members that die or freeze, compaction, log-in, TLS, restores."""

import asyncio
import base64
import shutil
import signal
from collections.abc import Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from holdfast.errors import OutcomeUnknown, Unavailable, UserError
from holdfast.model.secret import Secret
from holdfast.store.contract import Compacted, Guard, HistoryLost, Put, Store
from holdfast.store.etcd import EtcdStore
from holdfast.store.open import open_store
from holdfast.testing import store_commits, store_leases, store_outages, store_watches
from holdfast.testing.check_store import Check, run_check
from tests.conformance.servers import Etcd, free_ports, start_etcd

LEASE_S = 1.0

CLUSTER_CHECKS = (
    store_commits.no_update_is_lost_between_clients,
    store_commits.a_read_sees_what_was_answered,
    store_leases.one_candidate_wins,
    store_leases.a_paused_leader_is_fenced,
    store_watches.nothing_is_lost_between_range_and_watch,
)


class OneMember:
    """Kills one member of a cluster; the others go on."""

    answers_while_stopped = True

    def __init__(self, members: list[Etcd], leader: bool) -> None:
        self.members = members
        self.leader = leader
        self.victim: Etcd | None = None

    async def stop(self) -> None:
        self.victim = next(m for m in self.members if m.leads() == self.leader)
        self.victim.stop()

    async def start(self) -> None:
        assert self.victim is not None
        await asyncio.to_thread(self.victim.start)

    async def lose_answers(self) -> None:
        raise NotImplementedError

    cut = heal = lose_answers


def cluster_check(check: Check, members: list[Etcd], disturb: OneMember | None = None) -> None:
    turn = 0

    async def open_() -> Store:
        nonlocal turn
        turn += 1
        urls = [member.url for member in members]
        # Each client talks to another member: what one was told, the next must know.
        return EtcdStore(urls[turn % 3 :] + urls[: turn % 3], timeout_s=3.0)

    asyncio.run(run_check(check, open_, disturb=disturb, lease_s=LEASE_S))


@pytest.mark.parametrize("check", CLUSTER_CHECKS, ids=lambda check: check.__name__)
def test_a_cluster(check: Check, etcd_cluster: list[Etcd]) -> None:
    cluster_check(check, etcd_cluster)


@pytest.mark.parametrize("leader", [True, False], ids=["leader", "follower"])
def test_killing_a_member_loses_nothing(etcd_cluster: list[Etcd], leader: bool) -> None:
    check = store_outages.an_outage_loses_nothing
    cluster_check(check, etcd_cluster, OneMember(etcd_cluster, leader))


@contextmanager
def frozen(*members: Etcd) -> Iterator[None]:
    """Stop members without killing them: they hold their connections and say nothing."""
    for member in members:
        assert member.process is not None
        member.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for member in members:
            assert member.process is not None
            member.process.send_signal(signal.SIGCONT)


@asynccontextmanager
async def opened(*members: Etcd, **options: object):  # type: ignore[no-untyped-def]
    store = EtcdStore([member.url for member in members], **options)  # type: ignore[arg-type]
    try:
        yield store
    finally:
        await store.close()


def test_a_frozen_member_is_left(etcd_cluster: list[Etcd]) -> None:
    async def inside() -> None:
        victim = next(member for member in etcd_cluster if not member.leads())
        others = [member for member in etcd_cluster if member is not victim]
        async with opened(victim, *others, timeout_s=1.0, silence_s=0.3) as store:
            start = await store.commit([], [Put("frozen/a", b"1")])
            async with aclosing(store.watch("frozen/", start)) as watch:
                waiting = asyncio.create_task(anext(watch))
                await asyncio.sleep(0.3)
                with frozen(victim):
                    async with asyncio.timeout(10), opened(*others) as writer:
                        at = await writer.commit([], [Put("frozen/a", b"2")])
                        assert [change.revision for change in await waiting] == [at]
                        assert (await store.get("frozen/a")).value == b"2"

    asyncio.run(inside())


def test_a_member_that_is_cut_off_confirms_nothing(etcd_cluster: list[Etcd]) -> None:
    async def inside() -> None:
        alone, *others = etcd_cluster
        async with opened(alone, timeout_s=1.0) as store:
            at = await store.commit([], [Put("alone/a", b"1")])
            with frozen(*others):
                with pytest.raises(Unavailable):
                    await store.get("alone/a")
                # Without a change this is a read: the member may not answer it from memory.
                with pytest.raises(OutcomeUnknown):
                    await store.commit([Guard("alone/a", at)], [])
            async with asyncio.timeout(20):
                while not all(member.healthy() for member in etcd_cluster):
                    await asyncio.sleep(0.1)

    asyncio.run(inside())


def test_compacted_history_is_said_to_be_gone(etcd: Etcd) -> None:
    async def inside() -> None:
        async with opened(etcd) as store:
            first = await store.commit([], [Put("compact/a", b"1")])
            last = [await store.commit([], [Put("compact/a", b"2")]) for _ in range(3)][-1]
            etcd.ask("/v3/kv/compaction", {"revision": last})
            with pytest.raises(Compacted):
                await anext(store.watch("compact/", first))
            async with aclosing(store.watch("compact/", last)) as watch:
                at = await store.commit([], [Put("compact/a", b"3")])
                assert (await anext(watch))[0].revision == at

    asyncio.run(inside())


def test_a_port_where_nobody_listens_is_unavailable(etcd: Etcd) -> None:
    (port,) = free_ports(1)

    async def inside() -> None:
        store = EtcdStore([f"http://127.0.0.1:{port}"])
        for call in (store.get("a"), store.commit([], [Put("a", b"")]), store.grant_lease(1)):
            with pytest.raises(Unavailable, match=f"127.0.0.1:{port}"):
                await call
        await store.close()
        both = EtcdStore([f"http://127.0.0.1:{port}", etcd.url])
        assert await both.commit([], [Put("port/a", b"")])
        await both.close()

    asyncio.run(inside())


async def answers(store: Store, key: str) -> bool:
    try:
        await store.get(key)
    except Unavailable:
        return False
    return True


@contextmanager
def own_etcd() -> Iterator[Etcd]:
    (server,) = start_etcd(1)
    try:
        yield server
    finally:
        server.remove()


def test_a_restored_backup_is_noticed() -> None:
    async def inside(server: Etcd) -> None:
        async with opened(server) as store:
            await store.commit([], [Put("a", b"1")])
            server.stop()
            shutil.copytree(server.folder / "data", server.folder / "backup")
            server.start()
            # The kept connection is dead, and a commit on it would be unknown.
            assert await answers(store, "a")
            for _ in range(3):
                await store.commit([], [Put("a", b"2")])
            at = (await store.get("a")).revision
            server.stop()
            shutil.rmtree(server.folder / "data")
            (server.folder / "backup").rename(server.folder / "data")
            server.start()
            with pytest.raises(HistoryLost, match="lost commits"):
                await store.get("a")
            with pytest.raises(HistoryLost):
                await store.commit([], [Put("a", b"3")])
        async with opened(server) as anew:
            assert (await anew.get("a")).value == b"1"
            with pytest.raises(HistoryLost):
                await anext(anew.watch("a", at))

    with own_etcd() as server:
        asyncio.run(inside(server))


def test_log_in_and_log_in_again() -> None:
    async def inside(server: Etcd) -> None:
        for name in ("root", "holdfast"):
            server.ask("/v3/auth/user/add", {"name": name, "password": "p@ss,word"})
            server.ask("/v3/auth/role/add", {"name": name})
            server.ask("/v3/auth/user/grant", {"user": name, "role": name})
        key, end = (base64.b64encode(text).decode() for text in (b"mine/", b"mine0"))
        rights = {"permType": "READWRITE", "key": key, "range_end": end}
        server.ask("/v3/auth/role/grant", {"name": "holdfast", "perm": rights})
        server.ask("/v3/auth/enable", {})
        place = server.url.removeprefix("http://")
        store = await open_store(f"etcd:http://holdfast:p%40ss%2Cword@{place}")
        at = await store.commit([], [Put("mine/a", b"1")])
        assert at is not None
        watch = store.watch("mine/", at - 1)
        assert (await anext(watch))[0].revision == at
        await watch.aclose()
        with pytest.raises(UserError, match="permission denied"):
            await store.get("theirs")
        # A restart forgets all who were logged in.
        server.stop()
        server.launch(server.command)
        async with asyncio.timeout(20):
            while not await answers(store, "mine/a"):
                await asyncio.sleep(0.05)
        assert await store.commit([Guard("mine/a", at)], [Put("mine/a", b"2")])
        await store.close()
        wrong = EtcdStore([server.url], user="holdfast", password=Secret("secret-word"))
        with pytest.raises(UserError, match="does not let user holdfast in") as said:
            await wrong.get("mine/a")
        assert "secret-word" not in str(said.value)
        await wrong.close()

    with own_etcd() as server:
        asyncio.run(inside(server))


def test_tls() -> None:
    class TlsEtcd(Etcd):
        def __init__(self) -> None:
            port, peer_port = free_ports(2)
            super().__init__("m0", port, peer_port, f"m0=http://127.0.0.1:{peer_port}")
            https = f"https://127.0.0.1:{port}"
            self.command = [https if part == self.url else part for part in self.command]
            self.command.append("--auto-tls")
            self.url = https

        @property
        def certificate(self) -> Path:
            return self.folder / "data" / "fixtures" / "client" / "cert.pem"

        def healthy(self) -> bool:
            return self.certificate.exists()

    async def inside(server: TlsEtcd) -> None:
        store = await open_store(f"etcd:{server.url}?ca={server.certificate}")
        async with asyncio.timeout(20):
            while not await answers(store, "a"):
                await asyncio.sleep(0.1)
        assert await store.commit([], [Put("a", b"1")])
        await store.close()
        stranger = await open_store(f"etcd:{server.url}")
        with pytest.raises(Unavailable, match=r"(?i)certificate"):
            await stranger.commit([], [Put("a", b"2")])
        await stranger.close()

    server = TlsEtcd()
    server.start()
    try:
        asyncio.run(inside(server))
    finally:
        server.remove()
