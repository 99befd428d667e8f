"""What a store promises about values, ranges and commits."""

import asyncio

from holdfast.errors import Unavailable, UserError
from holdfast.store.contract import (
    COMMIT_BYTES_MAX,
    COMMIT_KEYS_MAX,
    KEY_BYTES_MAX,
    VALUE_BYTES_MAX,
    Delete,
    Guard,
    Item,
    Put,
)
from holdfast.testing.promises import must, refused, require, same
from holdfast.testing.store_bench import Bench, add_one, parse_count

ODD_NAMES = (
    " ", "'", '"', "%", "%s", "_", "\\", "a b", "a'b\"c", ";--", "\x01", "\n", "ä", "日本", "🦀",
    "\ud7ff", "\ue000", "\U0010ffff", "{}", "$1", "*", "//", "../..",
)  # fmt: skip


async def an_item_has_its_value_and_revisions(bench: Bench) -> None:
    """A key is absent, then has a value, a revision and the revision that created it."""
    store = await bench.client()
    key = bench.key("a")
    same("an absent key is None", await store.get(key), None)
    first = await bench.put(store, "a", b"1")
    same("a put is read back", await store.get(key), Item(key, b"1", first, first))
    second = await bench.put(store, "a", b"2")
    require("revisions grow", second > first, (first, second))
    same("created stays, revision moves", await store.get(key), Item(key, b"2", second, first))
    await store.commit([], [Delete(key)])
    same("a deleted key is None", await store.get(key), None)
    third = await bench.put(store, "a", b"3")
    same("a key made anew is new", await store.get(key), Item(key, b"3", third, third))


async def every_byte_is_kept(bench: Bench) -> None:
    """Values are bytes: empty, zero and not text."""
    store = await bench.client()
    for name, value in {"empty": b"", "zero": b"\0", "all": bytes(range(256)) * 4}.items():
        await bench.put(store, name, value)
        item = must(await store.get(bench.key(name)))
        same(f"the value {name} comes back", item.value, value)


async def creation_happens_once(bench: Bench) -> None:
    """A guard at revision 0 holds only while the key does not exist."""
    store = await bench.client()
    key = bench.key("a")
    must(await store.commit([Guard(key, 0)], [Put(key, b"first")]))
    same("made once", await store.commit([Guard(key, 0)], [Put(key, b"second")]), None)
    same("the first stays", must(await store.get(key)).value, b"first")


async def a_failed_guard_changes_nothing(bench: Bench) -> None:
    """If one guard of several does not hold, no change is made and the revision stays."""
    store = await bench.client()
    a, b, c = (bench.key(name) for name in "abc")
    old = await bench.put(store, "a", b"1")
    new = await bench.put(store, "a", b"2")
    changes: list[Put | Delete] = [Put(b, b"x"), Delete(a)]
    for guards in (
        [Guard(a, old)],
        [Guard(a, 0)],
        [Guard(b, new)],
        [Guard(a, new), Guard(b, 1)],
        [Guard(c, 0), Guard(a, new + 1)],
    ):
        same("a failed guard is None", await store.commit(guards, changes), None)
    same("nothing was made", await store.range(bench.prefix), ([Item(a, b"2", new, old)], new))


async def one_commit_is_one_revision(bench: Bench) -> None:
    """All changes of a commit have its revision, and a reader sees all or none."""
    store = await bench.client()
    keys = [bench.key(f"{n:03}") for n in range(COMMIT_KEYS_MAX)]
    first = must(await store.commit([Guard(k, 0) for k in keys], [Put(k, b"") for k in keys]))
    items, revision = await store.range(bench.prefix)
    same("all have the revision", {item.revision for item in items}, {first})
    same("all are there, sorted", [item.key for item in items], keys)
    require("a range is as of now", revision >= first, (revision, first))
    must(await store.commit([Guard(keys[0], first)], [Delete(k) for k in keys]))
    same("all are gone", (await store.range(bench.prefix))[0], [])


async def a_commit_that_changes_nothing_is_a_read(bench: Bench) -> None:
    """Without a change the revision stays, and guards are still checked."""
    store = await bench.client()
    at = await bench.put(store, "a", b"1")
    guard = Guard(bench.key("a"), at)
    same("guards alone are read", await store.commit([guard], []), at)
    same("deleting nothing is nothing", await store.commit([], [Delete(bench.key("x"))]), at)
    same("the range agrees", (await store.range(bench.prefix))[1], at)
    same("a guard that fails", await store.commit([Guard(bench.key("a"), at + 1)], []), None)
    require("no guard, no change", must(await store.commit([], [])) >= at)


async def a_range_is_exactly_its_prefix(bench: Bench) -> None:
    """Neighbours of a prefix are not in it, and keys are sorted by code point."""
    store = await bench.client()
    names = ["p", "p/", "p/a", "p/a/b", "p/é", "p/\uffff", "p/\U0010ffff", "p/\U0010ffff1", "p0"]
    await store.commit([], [Put(bench.key(name), b"") for name in reversed(names)])

    async def found(prefix: str) -> list[str]:
        items, _ = await store.range(bench.key(prefix))
        return [item.key.removeprefix(bench.prefix) for item in items]

    same("all of p", await found("p"), names)
    same("all below p/", await found("p/"), names[1:-1])
    same("the last character", await found("p/\U0010ffff"), names[6:8])
    same("none", await found("q"), [])


async def odd_names_are_names(bench: Bench) -> None:
    """Quotes, wildcards, control characters and all of Unicode are ordinary in a key."""
    store = await bench.client()
    for name in ODD_NAMES:
        await bench.put(store, name, name.encode())
    items, _ = await store.range(bench.prefix)
    wanted = sorted((bench.key(name), name.encode()) for name in ODD_NAMES)
    same("all names, in order", [(item.key, item.value) for item in items], wanted)
    for name in ODD_NAMES:
        same(f"{name!a} is found", must(await store.get(bench.key(name))).value, name.encode())
        found, _ = await store.range(bench.key(name))
        require(f"{name!a} is a prefix", bench.key(name) in [item.key for item in found], found)


async def names_no_store_can_keep_are_refused(bench: Bench) -> None:
    """NUL, half a character, nothing and too long are refused, with the whole commit."""
    store = await bench.client()
    too_long = bench.key("x" * KEY_BYTES_MAX)
    for key in (bench.key("\0"), bench.key("\ud800"), "", too_long):
        await refused(f"get of {key[:30]!a}", UserError, store.get(key))
        changes = [Put(bench.key("beside"), b""), Put(key, b"")]
        await refused(f"put of {key[:30]!a}", UserError, store.commit([], changes))
        await refused(f"guard on {key[:30]!a}", UserError, store.commit([Guard(key, 0)], []))
    longest = bench.key("x" * (KEY_BYTES_MAX - len(bench.prefix)))
    must(await store.commit([], [Put(longest, b"")]))
    same("only the longest was put", len((await store.range(bench.prefix))[0]), 1)


async def sizes_are_bounded_alike(bench: Bench) -> None:
    """A value at the limit is kept; above it, it is refused with the whole commit."""
    store = await bench.client()
    large = bytes(range(250)) * (VALUE_BYTES_MAX // 250)
    at = await bench.put(store, "a", large)
    same("the largest value", await store.get(bench.key("a")), Item(bench.key("a"), large, at, at))
    beside = Put(bench.key("beside"), b"")
    over = Put(bench.key("a"), large + b"1")
    await refused("a value above the limit", UserError, store.commit([], [beside, over]))
    half = b"1" * (COMMIT_BYTES_MAX // 2)
    pair = [beside, Put(bench.key("b"), half), Put(bench.key("c"), half)]
    await refused("a commit above the limit", UserError, store.commit([], pair))
    many = [Put(bench.key(str(n)), b"") for n in range(COMMIT_KEYS_MAX + 1)]
    await refused("too many changes", UserError, store.commit([], many))
    twice: list[Put | Delete] = [beside, Delete(beside.key)]
    await refused("one key changed twice", AssertionError, store.commit([], twice))
    same(
        "nothing of it was made", [i.key for i in (await store.range(bench.prefix))[0]], [over.key]
    )


async def a_range_of_any_size_is_read_at_one_revision(bench: Bench) -> None:
    """More than fits into one answer of any server comes back whole."""
    store, other = await bench.client(), await bench.client()
    large = b"1" * VALUE_BYTES_MAX
    for name in "abcdef":
        await bench.put(store, name, large)
    reading = asyncio.create_task(store.range(bench.prefix))
    await bench.put(other, "f", b"changed")
    items, revision = await reading
    same("all keys", [item.key for item in items], [bench.key(name) for name in "abcdef"])
    require("nothing from later", all(item.revision <= revision for item in items))
    require("old or new", items[-1].value in (large, b"changed"), items[-1].revision)


async def no_update_is_lost_between_clients(bench: Bench) -> None:
    """Two clients count one counter up, each reading and writing under a guard."""
    clients = [await bench.client(), await bench.client()]
    key = bench.key("counter")

    async def count_up(number: int) -> None:
        for _ in range(15):
            await add_one(clients[number], key)

    await asyncio.gather(count_up(0), count_up(1))
    count, marks = parse_count(await clients[0].get(key))
    same("every count is there once", (count, len(set(marks))), (30, 30))


async def a_reader_never_sees_half_a_commit(bench: Bench) -> None:
    """One client moves an amount between two keys; another always finds the same sum."""
    mover, reader = await bench.client(), await bench.client()
    a, b = bench.key("a"), bench.key("b")
    at = must(await mover.commit([], [Put(a, b"100"), Put(b, b"0")]))
    moved = asyncio.Event()

    async def move() -> None:
        nonlocal at
        for n in range(1, 41):
            changes = [Put(a, b"%d" % (100 - n)), Put(b, b"%d" % n)]
            at = must(await mover.commit([Guard(a, at), Guard(b, at)], changes))
        moved.set()

    async def read() -> None:
        while not moved.is_set():
            items, revision = await reader.range(bench.prefix)
            same("the sum stays", sum(int(item.value) for item in items), 100)
            same("both moved at once", len({item.revision for item in items}), 1)
            require("a range is not from the future", items[0].revision <= revision)

    await asyncio.gather(move(), read())


async def a_read_sees_what_was_answered(bench: Bench) -> None:
    """What one client was told is there is seen by another at once."""
    writer, reader = await bench.client(), await bench.client()
    for n in range(30):
        at = await bench.put(writer, "a", b"%d" % n)
        item = must(await reader.get(bench.key("a")))
        same("the answered value", (item.value, item.revision), (b"%d" % n, at))
        require("the range too", (await reader.range(bench.prefix))[1] >= at)


async def fifty_callers_share_a_client(bench: Bench) -> None:
    """Concurrent calls on one client do not disturb each other."""
    store = await bench.client()

    async def work(number: int) -> list[int]:
        name = f"{number:02}"
        made = [await bench.put(store, name, b"%d" % n) for n in range(3)]
        item = must(await store.get(bench.key(name)))
        same("its own last value", (item.value, item.revision), (b"2", made[-1]))
        return made

    made = await asyncio.gather(*(work(number) for number in range(50)))
    same("each commit its own revision", len({at for one in made for at in one}), 150)
    same("all keys", len((await store.range(bench.prefix))[0]), 50)


async def closing_is_final_and_repeatable(bench: Bench) -> None:
    """A closed store refuses, and what it held stays."""
    store, other = await bench.client(), await bench.client()
    await bench.put(store, "a", b"1")
    await store.close()
    await store.close()
    await refused("get after close", Unavailable, store.get(bench.key("a")))
    await refused("commit after close", Unavailable, store.commit([], [Delete(bench.key("a"))]))
    same("another client still works", must(await other.get(bench.key("a"))).value, b"1")


CHECKS = (
    an_item_has_its_value_and_revisions,
    every_byte_is_kept,
    creation_happens_once,
    a_failed_guard_changes_nothing,
    one_commit_is_one_revision,
    a_commit_that_changes_nothing_is_a_read,
    a_range_is_exactly_its_prefix,
    odd_names_are_names,
    names_no_store_can_keep_are_refused,
    sizes_are_bounded_alike,
    a_range_of_any_size_is_read_at_one_revision,
    no_update_is_lost_between_clients,
    a_reader_never_sees_half_a_commit,
    a_read_sees_what_was_answered,
    fifty_callers_share_a_client,
    closing_is_final_and_repeatable,
)
