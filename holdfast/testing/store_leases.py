"""What a store promises about leases, and what leadership makes of them."""

import asyncio

from holdfast.store.contract import Guard, LeaseLost, Put, Store
from holdfast.testing.promises import eventually, must, refused, require, same
from holdfast.testing.store_bench import Bench


async def one_candidate_wins(bench: Bench) -> None:
    """Of candidates that elect themselves at once, one leads; the others can write nothing."""
    clients = [await bench.client(), await bench.client()]
    leader = bench.key("leader")

    async def elect(number: int) -> int | None:
        lease = await bench.lease(clients[number % 2], bench.lease_s * 10)
        put = Put(leader, b"%d" % number, lease)
        return await clients[number % 2].commit([Guard(leader, 0)], [put])

    terms = await asyncio.gather(*(elect(number) for number in range(8)))
    won = [(number, term) for number, term in enumerate(terms) if term is not None]
    same("one wins", len(won), 1)
    number, term = won[0]
    item = must(await clients[0].get(leader))
    same("the winner is the leader", (item.value, item.revision), (b"%d" % number, term))
    for wrong in {term - 1, term + 1}:
        guarded = clients[1].commit([Guard(leader, wrong)], [Put(bench.key("x"), b"")])
        same("another term writes nothing", await guarded, None)
    must(await clients[0].commit([Guard(leader, term)], [Put(bench.key("x"), b"")]))


async def a_kept_lease_stays(bench: Bench) -> None:
    """A lease that is kept outlives its time, and keeping it changes no revision."""
    store = await bench.client()
    lease = await bench.lease(store, bench.lease_s)
    at = await bench.put(store, "a", b"1", lease)
    item = must(await store.get(bench.key("a")))
    same("an item names its lease", (item.lease, item.revision), (lease, at))
    for _ in range(6):
        await asyncio.sleep(bench.lease_s / 3)
        await store.keep_lease(lease)
    same("it is there, unchanged", await store.get(bench.key("a")), item)


async def a_lapsed_lease_takes_its_keys(bench: Bench) -> None:
    """When a lease lapses, its keys go in one revision, and nothing can be done under it."""
    store, other = await bench.client(), await bench.client()
    lease = await bench.lease(store, bench.lease_s)
    at = await bench.put(store, "stays", b"")
    changes = [Put(bench.key(name), b"", lease) for name in ("a", "b", "freed")]
    must(await store.commit([], changes))
    freed = await bench.put(store, "freed", b"", None)

    async def gone() -> bool:
        return await other.get(bench.key("a")) is None

    await eventually("the key of a lapsed lease goes", gone)
    items, revision = await other.range(bench.prefix)
    same("the others stay", [i.key for i in items], [bench.key("freed"), bench.key("stays")])
    require("it took revisions", revision > freed > at, (at, freed, revision))
    await refused("a lapsed lease cannot be kept", LeaseLost, store.keep_lease(lease))
    put = store.commit([], [Put(bench.key("c"), b"", lease), Put(bench.key("d"), b"")])
    await refused("nor can a key be put under it", LeaseLost, put)
    same("and nothing was", (await store.range(bench.prefix))[0], items)
    guarded = store.commit([Guard(bench.key("stays"), at + 1)], [Put(bench.key("c"), b"", lease)])
    same("a guard fails first", await guarded, None)
    await store.revoke_lease(lease)


async def a_lease_does_not_lapse_early(bench: Bench) -> None:
    """Shortly before its time is over, a lease holds."""
    store = await bench.client()
    start = asyncio.get_running_loop().time()
    lease = await bench.lease(store, bench.lease_s)
    await bench.put(store, "a", b"1", lease)
    while asyncio.get_running_loop().time() < start + bench.lease_s * 0.9:
        item = await store.get(bench.key("a"))
        early = asyncio.get_running_loop().time() - start
        if early < bench.lease_s:
            require("a lease never lapses early", item is not None, early)
        await asyncio.sleep(bench.lease_s / 10)


async def a_revoked_lease_ends_at_once(bench: Bench) -> None:
    """Revoking takes the keys before it answers, and can be repeated."""
    store, other = await bench.client(), await bench.client()
    lease = await bench.lease(store, bench.lease_s * 100)
    await bench.put(store, "a", b"1", lease)
    await store.revoke_lease(lease)
    same("the key is gone", await other.get(bench.key("a")), None)
    await store.revoke_lease(lease)
    await refused("it cannot be kept", LeaseLost, store.keep_lease(lease))
    require("leases are not given twice", await bench.lease(store, bench.lease_s) != lease)


async def a_paused_leader_is_fenced(bench: Bench) -> None:
    """A leader that wakes up after its lease lapsed can write nothing, before or after takeover."""
    paused, next_ = await bench.client(), await bench.client()
    old = await _lead(bench, paused)
    record = await bench.put(paused, "record", b"old")
    leader = bench.key("leader")

    async def free() -> bool:
        return await next_.get(leader) is None

    await eventually("the leader's key goes", free)
    write = [Put(bench.key("record"), b"late")]
    same("it cannot write", await paused.commit([Guard(leader, old)], write), None)
    new = await _lead(bench, next_)
    require("terms grow", new > old, (old, new))
    same("nor after takeover", await paused.commit([Guard(leader, old)], write), None)
    guards = [Guard(leader, old), Guard(bench.key("record"), record)]
    same("nor with the right record", await paused.commit(guards, write), None)
    same("nor by a read", await paused.commit([Guard(leader, old)], []), None)
    must(await next_.commit([Guard(leader, new)], [Put(bench.key("record"), b"new")]))
    same("the new one can", must(await paused.get(bench.key("record"))).value, b"new")


async def _lead(bench: Bench, store: Store) -> int:
    lease = await bench.lease(store, bench.lease_s)
    guards = [Guard(bench.key("leader"), 0)]
    return must(await store.commit(guards, [Put(bench.key("leader"), b"me", lease)]))


CHECKS = (
    one_candidate_wins,
    a_kept_lease_stays,
    a_lapsed_lease_takes_its_keys,
    a_lease_does_not_lapse_early,
    a_revoked_lease_ends_at_once,
    a_paused_leader_is_fenced,
)
