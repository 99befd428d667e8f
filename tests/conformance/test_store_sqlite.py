"""What only a store in a file must get right: kill -9, other processes, reboots, bad files."""

import asyncio
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import apsw
import pytest

from holdfast.errors import Unavailable, UserError
from holdfast.store.contract import Compacted, Delete, Guard, HistoryLost, LeaseLost, Put
from holdfast.store.sqlite import SqliteStore
from holdfast.store.sqlite_file import HostInfo
from holdfast.testing.store_bench import add_one, parse_count

PROGRAM = """
import asyncio, signal, resource, sys
from pathlib import Path
from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.store.contract import Guard, Put
from holdfast.store.sqlite import SqliteStore
from holdfast.testing.store_bench import add_one

async def main(path):
    store = await SqliteStore.open(Path(path))
    print("open", flush=True)
{body}
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def program(path: Path, body: str) -> list[str]:
    text = PROGRAM.format(body=textwrap.indent(textwrap.dedent(body), "    "))
    return [sys.executable, "-c", text, str(path)]


def with_store(path: Path, use: Callable[[SqliteStore], Awaitable[None]]) -> None:
    async def inside() -> None:
        store = await SqliteStore.open(path, timeout_s=0.5)
        try:
            await use(store)
        finally:
            await store.close()

    asyncio.run(inside())


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    body = """
    number = 0
    while True:
        at = await store.commit([], [Put(f"n/{number}", str(number).encode() * 100)])
        print(number, at, flush=True)
        number += 1
    """
    for _ in range(3):
        writer = subprocess.Popen(program(path, body), stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(60)]
        writer.kill()
        rest = writer.stdout.read()
        writer.wait()
        writer.stdout.close()
        # The last line may be half a line.
        answered = [line.split() for line in [*lines[1:], *rest.splitlines()[:-1]]]

        async def all_there(store: SqliteStore, answered: list[list[str]] = answered) -> None:
            for number, at in answered:
                item = await store.get(f"n/{number}")
                assert item is not None
                assert item.value == number.encode() * 100
                assert item.revision == int(at)

        with_store(path, all_there)
        assert len(answered) >= 59


def test_processes_that_count_together_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    command = program(path, "for _ in range(20): await add_one(store, 'counter')")
    others = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]

    async def count_too(store: SqliteStore) -> None:
        for _ in range(20):
            await add_one(store, "counter")
        while any(other.poll() is None for other in others):
            await asyncio.sleep(0.05)
        count, marks = parse_count(await store.get("counter"))
        assert (count, len(set(marks))) == (60, 60)

    with_store(path, count_too)
    assert [other.wait() for other in others] == [0, 0]


def test_a_watch_hears_of_another_process(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    other = subprocess.Popen(
        program(path, "await store.commit([], [Put('from/other', b'1')])"),
        stdout=subprocess.DEVNULL,
    )

    async def hear(store: SqliteStore) -> None:
        watch = store.watch("from/", 0)
        async with asyncio.timeout(20):
            (change,) = await anext(watch)
        await watch.aclose()
        assert change.key == "from/other"

    with_store(path, hear)
    assert other.wait() == 0


def test_leases_from_before_a_boot_are_lapsed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def inside() -> None:
        first = await SqliteStore.open(path, machine=HostInfo("boot 1", lambda: 5_000.0))
        lease = await first.grant_lease(60)
        at = await first.commit([], [Put("leader", b"me", lease)])
        await first.close()
        same_boot = await SqliteStore.open(path, machine=HostInfo("boot 1", lambda: 5_010.0))
        assert await same_boot.get("leader") is not None
        await same_boot.close()
        # The clock began anew, and says that the lease has an hour to go.
        rebooted = await SqliteStore.open(path, machine=HostInfo("boot 2", lambda: 5_010.0))
        assert await rebooted.get("leader") is None
        assert at is not None
        assert [change.key for change in await anext(rebooted.watch("", at))] == ["leader"]
        with pytest.raises(LeaseLost):
            await rebooted.keep_lease(lease)
        await rebooted.close()

    asyncio.run(inside())


def test_where_boots_have_no_name_a_clock_that_went_back_is_a_boot(tmp_path: Path) -> None:
    async def inside() -> None:
        first = await SqliteStore.open(tmp_path / "s", machine=HostInfo("", lambda: 5_000.0))
        lease = await first.grant_lease(60)
        await first.commit([], [Put("leader", b"me", lease)])
        await first.close()
        second = await SqliteStore.open(tmp_path / "s", machine=HostInfo("", lambda: 10.0))
        assert await second.get("leader") is None
        await second.close()

    asyncio.run(inside())


def test_a_file_held_by_another_is_unavailable_in_time(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def blocked(store: SqliteStore) -> None:
        await store.commit([], [Put("a", b"1")])
        holder = apsw.Connection(str(path))
        holder.execute("begin immediate")
        start = time.monotonic()
        longest = 0.0

        async def tick() -> None:
            nonlocal longest
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.01)
                longest = max(longest, time.monotonic() - before)

        ticking = asyncio.create_task(tick())
        puts = [store.commit([], [Put("a", b"2")]) for _ in range(5)]
        results = await asyncio.gather(*puts, return_exceptions=True)
        ticking.cancel()
        assert {type(result) for result in results} == {Unavailable}
        assert time.monotonic() - start < 3
        assert longest < 0.4, "the event loop was blocked"
        item = await store.get("a")
        assert item is not None
        assert item.value == b"1"
        holder.execute("rollback")
        holder.close()
        assert await store.commit([Guard("a", item.revision)], [Put("a", b"3")])

    with_store(path, blocked)


def test_a_full_disk_is_an_error_and_reads_go_on(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    body = """
    await store.commit([], [Put("a", b"before")])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, unlimited[1]))
    try:
        await store.commit([], [Put("a", b"x" * 900_000), Put("b", b"")])
    except (Unavailable, OutcomeUnknown) as error:
        print(type(error).__name__, flush=True)
    item = await store.get("a")
    print(item.value.decode(), await store.get("b"), flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    print(await store.commit([Guard("a", item.revision)], [Put("a", b"x" * 900_000)]), flush=True)
    """
    done = subprocess.run(program(path, body), capture_output=True, text=True, check=True)
    opened, error, before, after = done.stdout.splitlines()
    assert opened == "open"
    assert error in ("Unavailable", "OutcomeUnknown")
    assert before == "before None"
    assert after == "2"


def test_history_is_kept_for_so_many_revisions(tmp_path: Path) -> None:
    async def inside() -> None:
        store = await SqliteStore.open(tmp_path / "store.db", history_revisions=10)
        for n in range(30):
            await store.commit([], [Put("a", b"%d" % n)])
        watch = store.watch("a", 20)
        assert [(await anext(watch))[0].revision for _ in range(10)] == list(range(21, 31))
        await watch.aclose()
        with pytest.raises(Compacted):
            await anext(store.watch("a", 19))
        with pytest.raises(HistoryLost):
            await anext(store.watch("a", 31))
        await store.close()

    asyncio.run(inside())


def _other_program(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("create table theirs (x)")
    db.close()


def _newer(path: Path) -> None:
    with_store(path, _put)
    db = apsw.Connection(str(path))
    db.pragma("user_version", 99)
    db.close()


def _damaged(path: Path) -> None:
    with_store(path, _put)
    with path.open("r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * 4_096)


async def _put(store: SqliteStore) -> None:
    await store.commit([], [Put("a", b"x" * 20_000)])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_text("no database\n" * 200), "is damaged"),
        (_damaged, "is damaged"),
        (_other_program, "of another program"),
        (_newer, "has version 99; this Holdfast knows 1"),
        (lambda path: path.mkdir(), "cannot be opened"),
    ],
    ids=["text", "damaged", "other program", "newer version", "folder"],
)
def test_a_file_that_cannot_be_a_store_is_refused(
    tmp_path: Path, spoil: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "store.db"
    spoil(path)
    with pytest.raises(UserError, match=said):
        asyncio.run(SqliteStore.open(path))


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Create its folder"):
        asyncio.run(SqliteStore.open(tmp_path / "missing" / "store.db"))


def test_only_this_user_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with_store(path, _put)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_cancelled_call_leaves_the_store_working(tmp_path: Path) -> None:
    async def cancel(store: SqliteStore) -> None:
        for _ in range(20):
            call = asyncio.create_task(store.commit([], [Put("a", b"x" * 100_000)]))
            await asyncio.sleep(0)
            call.cancel()
        # Revision 0 if no call had begun before it was cancelled.
        assert await store.commit([], [Delete("a")]) is not None
        assert await store.get("a") is None

    with_store(tmp_path / "store.db", cancel)
