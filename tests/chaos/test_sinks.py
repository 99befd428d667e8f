"""The kinds of sinks that chaos writes to: their readers find what is wrong."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.chaos.engine.jobs import From, Shape, first_id
from tests.chaos.engine.kill_loop import VICTIMS, strikes
from tests.chaos.engine.sinks import Delta, Files, SinkKind

SMALL = Shape(((From(1, 2),),))
BESIDE = Shape(((From(1, 2),),), first=1)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def add(kind: SinkKind, out: Path, *numbers: int) -> None:
    """Add rows as a stranger would."""
    if isinstance(kind, Delta):
        write_deltalake(out / "p1", rows(*numbers), mode="append")
        return
    (out / "p1").mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(*numbers), out / "p1" / f"{len(list(out.rglob('*')))}.parquet")


@pytest.mark.parametrize("kind", [Files, Delta])
def test_rows_are_seen_as_often_as_they_are_there(kind: type[SinkKind], tmp_path: Path) -> None:
    sink, out = kind(tmp_path / "sink"), tmp_path / "out"
    assert len(SMALL.flaws(out, True, sink)) == 1
    add(sink, out, 1, 2)
    assert SMALL.flaws(out, True, sink) == []
    add(sink, out, 2)
    assert "more than once" in SMALL.flaws(out, True, sink)[0]


@pytest.mark.parametrize("kind", [Files, Delta])
def test_jobs_may_share_a_table(kind: type[SinkKind], tmp_path: Path) -> None:
    sink, out = kind(tmp_path / "sink"), tmp_path / "out"
    add(sink, out, 1, 2, first_id(1), first_id(1) + 1)
    assert SMALL.flaws(out, True, sink, [BESIDE]) == []
    assert BESIDE.flaws(out, True, sink, [SMALL]) == []
    assert "of no source" in SMALL.flaws(out, True, sink)[0]


@pytest.mark.parametrize(("kind", "hidden"), [(Files, ".holdfast"), (Delta, "_holdfast")])
def test_what_is_staged_is_counted_and_can_be_lost(
    kind: type[SinkKind], hidden: str, tmp_path: Path
) -> None:
    sink, out = kind(tmp_path / "sink"), tmp_path / "out"
    add(sink, out, 1, 2)
    assert not sink.left(out)
    (out / "p1" / hidden).mkdir()
    pq.write_table(rows(3, 4), out / "p1" / hidden / "a.parquet")
    (out / "p1" / hidden / "half.parquet").write_bytes(b"PAR1")
    assert len(sink.left(out)) == 2
    assert sorted(sink.hidden(out)) == [3, 4]
    assert sink.lose(out) == 2
    assert not sink.left(out)
    assert sorted(sink.shown(out, "p1")) == [1, 2]


def test_kills_follow_from_the_seed() -> None:
    assert strikes(7, 20) == strikes(7, 20)
    assert strikes(7, 20) != strikes(8, 20)
    assert {s.victim for s in strikes(7, 500)} == set(VICTIMS)
