"""What a store promises about watches."""

import asyncio
from contextlib import aclosing

from holdfast.errors import Unavailable
from holdfast.store.contract import VALUE_BYTES_MAX, Change, Delete, Item, Put, Store
from holdfast.testing.promises import PATIENCE_S, eventually, must, refused, require, same
from holdfast.testing.store_bench import Bench, following


async def a_watch_tells_each_change_in_order(bench: Bench) -> None:
    """Puts, deletes and their revisions arrive as they were made, and only below the prefix."""
    store, other = await bench.client(), await bench.client()
    a, b = bench.key("in/a"), bench.key("in/b")
    before = await bench.put(store, "in/a", b"before")
    wanted = []
    async with following(other, bench.key("in/"), before) as seen:
        at = must(await store.commit([], [Put(b, b"1"), Put(bench.key("out"), b""), Put(a, b"1")]))
        wanted += [Change(a, Item(a, b"1", at, before), at), Change(b, Item(b, b"1", at, at), at)]
        made = at
        await bench.put(store, "in0", b"")
        at = must(await store.commit([], [Delete(a), Delete(bench.key("in/never")), Put(b, b"2")]))
        wanted += [Change(a, None, at), Change(b, Item(b, b"2", at, made), at)]
        at = must(await store.commit([], [Put(a, b"again")]))
        wanted += [Change(a, Item(a, b"again", at, at), at)]
        await _until_told(seen, len(wanted))
    same("all changes, in order", seen, wanted)


async def a_watch_resumes_after_any_revision(bench: Bench) -> None:
    """A watch that starts in the past tells what happened since, without the revision named."""
    store = await bench.client()
    made = [await bench.put(store, "a", b"%d" % n) for n in range(8)]
    for index, after in enumerate(made):
        async with following(store, bench.prefix, after) as seen:
            await _until_told(seen, len(made) - index - 1)
        same("what came after", [change.revision for change in seen], made[index + 1 :])


async def nothing_is_lost_between_range_and_watch(bench: Bench) -> None:
    """A reader that lists and then watches ends with what is there, however busy the writer."""
    writer, reader = await bench.client(), await bench.client()
    last = 120

    async def write() -> None:
        for n in range(last + 1):
            name = f"{n % 7}"
            if n % 5 == 4 and n < last:
                must(await writer.commit([], [Delete(bench.key(name))]))
            else:
                await bench.put(writer, name, b"%d" % n)

    writing = asyncio.create_task(write())
    mirrors = await asyncio.gather(*(_mirror(bench, reader, last, d) for d in (0, 0.02, 0.05)))
    await writing
    items, _ = await reader.range(bench.prefix)
    for mirror in mirrors:
        same("the mirror is the store", mirror, {item.key: item for item in items})


async def _mirror(bench: Bench, store: Store, last: int, delay_s: float) -> dict[str, Item]:
    await asyncio.sleep(delay_s)
    items, revision = await store.range(bench.prefix)
    mirror = {item.key: item for item in items}
    if any(item.value == b"%d" % last for item in items):
        return mirror
    async with asyncio.timeout(PATIENCE_S), aclosing(store.watch(bench.prefix, revision)) as watch:
        async for made in watch:
            for change in made:
                require("no change is told twice", change.revision > revision, change)
                mirror.pop(change.key, None)
                if change.item:
                    mirror[change.key] = change.item
            revision = made[0].revision
            if any(c.item and c.item.value == b"%d" % last for c in made):
                break
    return mirror


async def a_watch_sees_a_lease_lapse(bench: Bench) -> None:
    """The end of a lease, by time and by revoking, is a change like any other."""
    store, other = await bench.client(), await bench.client()
    lapsing = await bench.lease(store, bench.lease_s)
    revoked = await bench.lease(store, bench.lease_s * 100)
    start = await bench.put(store, "start", b"")
    async with following(other, bench.prefix, start) as seen:
        changes = [Put(bench.key("a"), b"", lapsing), Put(bench.key("b"), b"", lapsing)]
        must(await store.commit([], changes))
        await bench.put(store, "c", b"", revoked)
        await store.revoke_lease(revoked)
        await _until_told(seen, 6)
    names = [(change.key.removeprefix(bench.prefix), change.item is None) for change in seen]
    same("made, then gone", names[:4], [("a", False), ("b", False), ("c", False), ("c", True)])
    same("gone together", names[4:], [("a", True), ("b", True)])
    same("in one revision", len({change.revision for change in seen[4:]}), 1)


async def a_watch_carries_large_values(bench: Bench) -> None:
    """The largest value, and many of them at once, go through a watch."""
    store, other = await bench.client(), await bench.client()
    start = await bench.put(store, "start", b"")
    large = bytes(range(250)) * (VALUE_BYTES_MAX // 250)
    made = [await bench.put(store, f"{n}", large) for n in range(5)]
    async with following(other, bench.prefix, start) as seen:
        await _until_told(seen, 5)
        made.append(await bench.put(store, "5", large))
        await _until_told(seen, 6)
    same("all revisions", [change.revision for change in seen], made)
    same("whole values", {must(change.item).value for change in seen}, {large})


async def many_watches_do_not_disturb_each_other(bench: Bench) -> None:
    """Watches on one client each tell everything, and one that is not read holds up nobody."""
    store = await bench.client()
    start = await bench.put(store, "start", b"")
    lazy = store.watch(bench.prefix, start)
    async with (
        aclosing(lazy),
        following(store, bench.key("a"), start) as first,
        following(store, bench.prefix, start) as second,
    ):
        at = await bench.put(store, "a", b"0")
        same("the first change", (await anext(lazy))[0].revision, at)
        made = [at] + [await bench.put(store, "ab"[n % 2], b"%d" % n) for n in range(1, 20)]
        await _until_told(second, 20)
        await _until_told(first, 10)
        same("the lazy one goes on where it was", (await anext(lazy))[0].revision, made[1])
    same("its own prefix", [change.revision for change in first], made[::2])
    same("everything", [change.revision for change in second], made)


async def closing_ends_a_watch(bench: Bench) -> None:
    """A watch on a store that is closed ends with an error, not in silence."""
    store = await bench.client()
    start = await bench.put(store, "start", b"")
    async with asyncio.timeout(PATIENCE_S), aclosing(store.watch(bench.prefix, start)) as watch:
        waiting = asyncio.create_task(anext(watch))
        await asyncio.sleep(0.1)
        await store.close()
        await refused("a watch on a closed store", Unavailable, waiting)


async def _until_told(seen: list[Change], count: int) -> None:
    async def told() -> bool:
        return len(seen) >= count

    await eventually(f"a watch tells {count} changes", told)


CHECKS = (
    a_watch_tells_each_change_in_order,
    a_watch_resumes_after_any_revision,
    nothing_is_lost_between_range_and_watch,
    a_watch_sees_a_lease_lapse,
    a_watch_carries_large_values,
    many_watches_do_not_disturb_each_other,
    closing_ends_a_watch,
)
