"""What a store promises when its server dies, is slow, or does not answer.

Each check proves that the fault was there: a check whose fault did not bite fails.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.store.contract import LeaseLost, Put, Store
from holdfast.testing.promises import PATIENCE_S, eventually, must, refused, require, same
from holdfast.testing.store_bench import Bench, add_one, following, parse_count

T = TypeVar("T")


async def an_outage_loses_nothing(bench: Bench) -> None:
    """What was answered survives the server, calls fail in time, and watches go on by themselves.

    One writer never stops.  Later, the values it was told are there are all in history, in order.
    """
    store, watcher = await bench.client(), await bench.client()
    start = await bench.put(store, "start", b"")
    answered: list[tuple[int, bytes]] = []
    failed: list[Exception] = []
    async with following(watcher, bench.key("n/"), start) as seen:
        writing = asyncio.create_task(_write_on(bench, store, answered, failed))
        try:
            await _until("the writer writes", lambda: len(answered) >= 5)
            await bench.disturb.stop()
            await _settled_down(bench, store, answered, failed)
            await bench.disturb.start()
            before = len(answered)
            await _until("calls work again", lambda: len(answered) >= before + 5)
        finally:
            writing.cancel()
            await asyncio.wait({writing})
        last = answered[-1][0]
        await _until("the watch goes on", lambda: bool(seen) and seen[-1].revision >= last)
    told = [(change.revision, must(change.item).value) for change in seen]
    same("told once, in order", told, sorted(set(told)))
    same("nothing answered was lost", sorted(set(answered) - set(told)), [])
    for at, value in answered:
        item = must(await store.get(bench.key(f"n/{value.decode()}")))
        same("every answered commit is there", (item.revision, item.value), (at, value))


async def _write_on(
    bench: Bench, store: Store, answered: list[tuple[int, bytes]], failed: list[Exception]
) -> None:
    number = 0
    while True:
        number += 1
        value = b"%d" % number
        try:
            async with asyncio.timeout(PATIENCE_S):
                answered.append((await bench.put(store, f"n/{number}", value), value))
        except (Unavailable, OutcomeUnknown) as error:
            failed.append(error)
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.01)


async def _settled_down(
    bench: Bench, store: Store, answered: list[tuple[int, bytes]], failed: list[Exception]
) -> None:
    """Wait until the outage shows, or until what is left of a cluster goes on."""
    if bench.disturb.answers_while_stopped:
        before = len(answered)
        await _until("the rest of the cluster goes on", lambda: len(answered) >= before + 5)
        return
    await _until("calls fail", lambda: len(failed) >= 2)
    async with asyncio.timeout(PATIENCE_S):
        await refused("a read cannot be answered", Unavailable, store.get(bench.key("start")))


async def an_unanswered_commit_is_unknown(bench: Bench) -> None:
    """A change that is made, but whose answer is lost, is reported as unknown and can be read."""
    store = await bench.client()
    lease = await bench.lease(store, bench.lease_s * 20)
    at = await bench.put(store, "leased", b"", lease)
    await bench.disturb.lose_answers()
    put = store.commit([], [Put(bench.key("a"), b"made")])
    await _refused_in_time("a commit without an answer", OutcomeUnknown, put)
    await _refused_in_time("a read", Unavailable, store.get(bench.key("a")))
    await bench.disturb.heal()
    item = must(await _working(lambda: store.get(bench.key("a"))))
    same("it was made", item.value, b"made")
    same("once", item.created, item.revision)
    require("after what came before", item.revision > at)


async def an_unanswered_lease_call_is_unknown(bench: Bench) -> None:
    """Leases too: what cannot be known is said to be unknown, never to be done or not done."""
    store = await bench.client()
    lease = await bench.lease(store, bench.lease_s * 20)
    await bench.put(store, "a", b"", lease)
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "grant": lambda: store.grant_lease(bench.lease_s),
        "keep": lambda: store.keep_lease(lease),
        "revoke": lambda: store.revoke_lease(lease),
    }
    for name, call in calls.items():
        # Each starts on a connection that works, or it could not be sent at all.
        require("the lease holds", await _working(lambda: store.get(bench.key("a"))) is not None)
        await bench.disturb.lose_answers()
        await _refused_in_time(f"a {name} without an answer", OutcomeUnknown, call())
        await bench.disturb.heal()
    same("it was revoked", await _working(lambda: store.get(bench.key("a"))), None)
    await refused("and stays so", LeaseLost, store.keep_lease(lease))


async def broken_connections_double_nothing(bench: Bench) -> None:
    """Counting goes on exactly while connections break again and again."""
    store, other, watcher = [await bench.client() for _ in range(3)]
    key = bench.key("counter")
    start = await bench.put(store, "start", b"")
    cuts = counted = 0

    async def cut() -> None:
        nonlocal cuts
        while cuts < 8:
            await asyncio.sleep(0.1)
            await bench.disturb.cut()
            cuts += 1

    async def count_up(client: Store) -> None:
        nonlocal counted
        while cuts < 8:
            await add_one(client, key)
            counted += 1
            await asyncio.sleep(0.01)

    async with following(watcher, key, start) as seen:
        await asyncio.gather(cut(), count_up(store), count_up(other))
        await _until("the watch catches up", lambda: len(seen) >= counted)
    count, marks = parse_count(await _working(lambda: store.get(key)))
    require("something was counted", counted > 0)
    same("counted exactly", (count, len(set(marks))), (counted, counted))
    counts = [parse_count(must(change.item))[0] for change in seen]
    same("the watch saw each count once, in order", counts, list(range(1, counted + 1)))


async def _refused_in_time(promise: str, kind: type[Exception], call: Awaitable[object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await refused(promise, kind, call)


async def _working(ask: Callable[[], Awaitable[T]]) -> T:
    """Return an answer, once there is one."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await ask()
            except Unavailable:
                await asyncio.sleep(0.05)


async def _until(promise: str, so: Callable[[], bool]) -> None:
    async def ask() -> bool:
        return so()

    await eventually(promise, ask)


CHECKS = (
    an_outage_loses_nothing,
    an_unanswered_commit_is_unknown,
    an_unanswered_lease_call_is_unknown,
    broken_connections_double_nothing,
)
