"""The harness itself: its reader finds what is wrong, its ledger who wrote, its network breaks."""

import asyncio
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.connect.options import describe
from holdfast.connect.registry import Registry
from holdfast.connectors.files.sink_options import FileFormat
from holdfast.errors import UserError
from holdfast.model.job import Role
from holdfast.process.event_trace import digest
from holdfast.store.contract import Change, Item
from tests.chaos.engine.catalogue import chosen, rotating, with_sinks
from tests.chaos.engine.ledger import Ledger, late_writes, tell
from tests.chaos.engine.modes import EVERY, bring_back, modes_of, take_away
from tests.chaos.engine.proxy import Proxy
from tests.chaos.engine.reader import flaws, hidden_files, ids
from tests.chaos.engine.sinks import KINDS, Files
from tests.oracle.check import check_story
from tests.oracle.events import Try, Write, to_line

UNREAD = {"parquet", "binary"}
"""Formats without a table of their own: Parquet has two, and made-up rows are no whole files."""


def write(folder: Path, name: str, numbers: list[int]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": numbers}), path)


def test_the_reader_sees_what_is_shown_and_no_more(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", [1, 2])
    write(tmp_path, "day=1/b.parquet", [3])
    write(tmp_path, ".staged/c.parquet", [4])
    write(tmp_path, "_tmp/d.parquet", [5])
    assert sorted(ids(tmp_path)) == [1, 2, 3]
    assert len(hidden_files(tmp_path)) == 2


@pytest.mark.parametrize(
    ("found", "count", "said"),
    [
        ([1, 2, 3], 3, []),
        ([1, 2, 2, 3], 3, ["more than once"]),
        ([1, 3], 3, ["missing"]),
        ([1, 2, 3, 9], 3, ["do not belong"]),
        ([1, 2], None, []),
        ([1, 3], None, ["missing", "do not belong"]),
    ],
)
def test_flaws_of_rows(found: list[int], count: int | None, said: list[str]) -> None:
    told = flaws(Counter(found), 1, count)
    assert len(told) == len(said)
    assert all(word in text for word, text in zip(said, told, strict=True))


def change(key: str, value: bytes, revision: int) -> Change:
    return Change(key, Item(key, value, revision, revision), revision)


def log(folder: Path, process: str, *tries: Try) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{process}.jsonl").write_text("".join(to_line(t) + "\n" for t in tries))


def asked(process: str, at: float, key: str, value: bytes, **guards: int) -> Try:
    return Try(at=at, process=process, guards=guards, changes={key: digest(value)})


def test_a_write_is_joined_with_who_asked_for_it(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.take([change("leader", b"m1", 1)])
    ledger.take([change("other/j", b"x", 2)])
    log(
        tmp_path / "events", "M1#a",
        asked("M1#a", 0.1, "leader", b"m1", leader=0),
        asked("M1#a", 0.2, "other/j", b"x", leader=1),
        asked("M1#a", 0.3, "clock", b"5.0", leader=1),
    )  # fmt: skip
    ledger.take([change("clock", b"5.0", 3)])
    ledger.take([change("other/k", b"y", 4)])
    story = tell(ledger, tmp_path / "events", ["j"], 0.0, [])
    writes = story.of(Write)
    assert [w.key for w in writes] == ["leader", "other/j", "clock"], "what is of no job is of all"
    assert [(w.process, w.term) for w in writes] == [("M1#a", 0), ("M1#a", 1), ("M1#a", 1)]
    assert not [t for t in check_story(story) if t.startswith(("I1 ", "I2 "))]


def test_a_write_of_a_deposed_leader_is_found(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.take([change("leader", b"m1", 1)])
    ledger.take([change("leader", b"m2", 2)])
    ledger.take([change("other/j", b"x", 3)])
    log(
        tmp_path / "events", "M1#a",
        asked("M1#a", 0.1, "leader", b"m1", leader=0),
        asked("M1#a", 0.3, "other/j", b"x", leader=1),
    )  # fmt: skip
    log(tmp_path / "events", "M2#b", asked("M2#b", 0.2, "leader", b"m2", leader=0))
    story = tell(ledger, tmp_path / "events", ["j"], 0.0, [])
    assert any(t.startswith("I2 ") for t in check_story(story))
    assert late_writes(ledger, tmp_path / "events", 1, 0.25) == (1, ["other/j"])


def test_a_network_that_breaks() -> None:
    asyncio.run(_break_network())


async def _break_network() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname()[1])
    await proxy.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"a")
    assert await reader.read(1) == b"a"
    proxy.freeze()
    writer.write(b"b")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.1)
    proxy.heal()
    assert await reader.read(1) == b"b"
    proxy.cut()
    assert await reader.read(1) == b""
    writer.close()
    proxy.close()
    await proxy.closed()
    server.close()


def test_every_scenario_has_its_turn() -> None:
    # Those for each kind of sink are for `make chaos` alone.
    mine = [s for s in chosen("sqlite", []) if not s.sink]
    turns = -(-len(mine) // 12)
    seen = {s.id for turn in range(turns) for s in rotating("sqlite", turn, 12)}
    assert seen == {s.id for s in mine}
    assert all(len(rotating("sqlite", turn, 12)) in (11, 12) for turn in range(turns))
    assert len({s.id for s in mine}) == len(mine) >= 40
    sinks = [s for s in chosen("sqlite", []) if s.sink and s.sink != "jdbc-mysql"]
    assert {s.id for t in range(len(sinks)) for s in with_sinks("sqlite", t, 1)} == {
        s.id for s in sinks
    }


def test_windows_that_are_not_there_are_refused() -> None:
    with pytest.raises(UserError, match="Z99"):
        chosen("sqlite", ["Z99"])


def test_a_window_may_be_named_with_a_kind_of_sink() -> None:
    assert {s.sink for s in chosen("etcd", ["F05"])} == set(KINDS)
    assert [s.key for s in chosen("etcd", ["F05-delta"])] == ["F05-delta"]


def test_every_kind_of_sink_is_struck_in_many_windows() -> None:
    for store in ("sqlite", "etcd", "postgres"):
        found = [s for s in chosen(store, []) if s.window.startswith("F")]
        assert len({s.window for s in found}) >= 15
        for kind in KINDS:
            assert len({s.window for s in found if s.sink == kind}) >= 5


def test_save_modes_are_struck_with_every_sink_that_has_them() -> None:
    has = {k for k in Registry.load().names(Role.SINK) if _has_save_modes(k)} - {"InMemory"}
    assert has == {"Delta", "Iceberg", "Jdbc", "LocalFile", "Paimon", "Spark"}
    for window in ("P01", "P02"):
        assert {s.sink for s in chosen("etcd", [window])} == set(EVERY)
    assert {how.partition(",")[0] for how, _ in modes_of(Files(Path()))} == {
        "",
        *(f"file_format_type = {f.value}" for f in FileFormat if f.value not in UNREAD),
    }


def _has_save_modes(name: str) -> bool:
    plugin = Registry.load().find(Role.SINK, name)
    assert plugin
    keys = {info.key for info in describe(plugin.options_class)}
    return "data_save_mode" in keys or {"mode", "format"} <= keys


def test_a_table_comes_back_whether_or_not_something_was_begun_in_its_place(tmp_path: Path) -> None:
    for begun in (True, False):
        out = tmp_path / str(begun)
        write(out, "p1/part.parquet", [1, 2])
        take_away(Files(out), out, "p1")
        assert not (out / "p1").exists()
        if begun:
            write(out, "p1/staged.parquet", [3])
        bring_back(Files(out), out, "p1")
        assert ids(out / "p1") == Counter([1, 2])


def test_windows_that_must_be_there() -> None:
    wanted = {
        "A01", "A03", "A04", "A10", *(f"B0{n}" for n in range(1, 9)),
        *(f"C{n:02}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16, 17)),
        *(f"D0{n}" for n in range(1, 10)), *(f"E0{n}" for n in range(1, 9)),
        "E12", "E13", "E14", "E15", "E20", "H03", "H04", "H05", "H07", "H09", "H10",
        *(f"G{n:02}" for n in range(1, 15)), "P01", "P02", "U01", "U02", "S01",
    }  # fmt: skip
    for store in ("sqlite", "etcd", "postgres"):
        assert wanted <= {s.window for s in chosen(store, [])}
