"""What benchmarks make of the runs they measure; no run is made here."""

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks import batch, peer, quoted, seatunnel, streaming
from benchmarks.job import COLUMNS
from benchmarks.measure import Cost
from benchmarks.rivals import NO_JAR, OURS, SCRIPT, Race, run_race
from benchmarks.threads import kind_of

SAID = """
2026-11-16 10:00:09,100 INFO  [s.c.s.s.c.ClientExecuteCommand] [main] -
***********************************************
           Job Statistic Information
***********************************************
Start Time                : 2026-11-16 10:00:01
End Time                  : 2026-11-16 10:00:09
Total Time(s)             :                   8
Total Read Count          :                1000
Total Write Count         :                1000
Total Failed Count        :                   0
***********************************************
"""


def cost(moving_s: float, cpu_s: float = 1.0, first_job_s: float | None = None) -> Cost:
    marks = {"ready": 102.0, "ended": 102.0 + moving_s}
    if first_job_s is not None:
        marks["first_job"] = 100.0 + first_job_s
    spent = ((101.0, 5.0), (102.0 + moving_s, 5.0 + cpu_s))
    return Cost(moving_s + 2, 5.0 + cpu_s, 100.0, marks, spent)


def race() -> Race:
    taken = {
        SCRIPT: [cost(4, 6, 8), cost(50, 6, 8), cost(5, 6, 8)],
        OURS: [cost(4, 3, 4)] * 3,
        "dlt": [cost(2)],
    }
    return Race("csv -> parquet", 1_000, taken, {}, {"tasks": 2.0, "compiling": 1.0})


def test_the_middle_round_counts() -> None:
    assert race().rows_s(SCRIPT) == 200
    assert race().lead(SCRIPT) == 1.25
    assert race().lead("dlt") == 0.5


def test_a_slow_peer_has_fewer_rows_and_its_own_rate() -> None:
    few = replace(race(), fewer={"dlt": 100})
    assert (few.rows_s("dlt"), few.lead("dlt"), few.rows_s(OURS)) == (50, 5, 250)
    assert "dlt 0.5" in few.profile()[1]


def test_the_table_has_every_peer_and_says_who_could_not_take_part() -> None:
    rows = {(row["work"], row["with"]): row for row in batch.table_of([race()])}
    assert rows["csv -> parquet", SCRIPT] == {
        "work": "csv -> parquet",
        "with": SCRIPT,
        "rows": 1_000,
        "rounds": 3,
        "rows/s": 200,
        "Holdfast / it": 1.25,
        "CPU s a million rows": 6_000.0,
        "first job s": 8.0,
        "whole s": 7.0,
    }
    assert rows["csv -> parquet", OURS]["Holdfast / it"] is None
    assert rows["csv -> parquet", "dlt"]["rounds"] == 1
    assert rows["csv -> parquet", "dlt"]["first job s"] is None
    assert rows["csv -> parquet", "PyFlink"]["rows/s"] == NO_JAR
    assert rows["csv -> parquet", "SeaTunnel"]["rows/s"] == seatunnel.ABSENT
    assert rows["PostgreSQL -> parquet", OURS]["rows/s"] == batch.NO_SOURCE


def test_a_peer_that_is_ahead_is_a_missed_bar() -> None:
    bars = {bar.what: bar for bar in batch.bars_of(race())}
    assert bars["csv -> parquet: rows/s against PySpark"].met
    assert not bars["csv -> parquet: rows/s against dlt"].met
    first = bars["csv -> parquet: time to the first job against PySpark"]
    assert first.met and first.seen == 0.5
    assert len(bars) == 3


def test_the_report_can_be_written() -> None:
    other = Race("csv", 1_000, {n: [cost(4, 6)] for n in (OURS, quoted.MULTI_LINE)}, {}, {})
    made = batch.report_of([race(), race()], "rows", {OURS: "1"}, "", {quoted.QUOTED: other})
    assert made.bars[-1].bound == quoted.MOST[quoted.QUOTED] and not made.bars[-1].met
    assert made.plots[0].series["dlt"] == [("csv -> parquet", 500.0)] * 2
    json.dumps(asdict(made), allow_nan=False)


def test_peers_take_turns_and_a_slow_one_ends_early() -> None:
    turns: list[str] = []

    def writer(name: str) -> Cost:
        turns.append(name)
        return cost(1)

    writers = {name: lambda name=name: writer(name) for name in ("a", "b")}  # type: ignore[misc]
    found = run_race("work", 10, writers, {"a": 1, "b": 3})
    assert turns == ["a", "b", "b", "b"]
    assert {name: len(costs) for name, costs in found.taken.items()} == {"a": 1, "b": 3}


def test_seatunnel_says_when_its_job_ran() -> None:
    marks = seatunnel.marks(SAID, 1_000)
    assert marks["ended"] - marks["ready"] == 8


def test_seatunnel_without_statistics_or_with_rows_lost_is_no_figure() -> None:
    with pytest.raises(SystemExit, match="no statistics"):
        seatunnel.marks("Exception in thread main", 1_000)
    with pytest.raises(AssertionError, match="1000 rows of 2000"):
        seatunnel.marks(SAID, 2_000)


def test_an_installation_of_seatunnel_is_looked_at_before_anything_is_measured(
    tmp_path: Path,
) -> None:
    assert seatunnel.named({}) is None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "seatunnel.sh").touch()
    with pytest.raises(SystemExit, match=r"lacks the LocalFile connector, the Jdbc connector"):
        seatunnel.named({seatunnel.VARIABLE: str(tmp_path)})
    for name in ("connectors/connector-file-local-2.3.12.jar", "connectors/connector-jdbc-2.jar",
                 "lib/postgresql-42.7.jar"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert seatunnel.named({seatunnel.VARIABLE: str(tmp_path)}) == tmp_path
    assert seatunnel.version(tmp_path) == "2.3.12"


def test_all_that_peers_bring_along_is_pinned() -> None:
    for pins in sorted(peer.PINS.glob("*.txt")):
        lines = [x for x in pins.read_text().splitlines() if x and not x.lstrip().startswith("#")]
        assert lines
        assert [x for x in lines if "==" not in x] == [], pins.name
        assert pins.with_suffix(".in").exists()


def test_threads_of_a_jvm_are_known_by_their_names() -> None:
    names = ("Executor task l", "C2 CompilerThre", "G1 Conc#0", "VM Thread", "dispatcher-even")
    assert [*map(kind_of, names)] == ["tasks", "compiling", "collecting", "collecting", "other"]


def test_streaming_promises_about_micro_batches_only_where_there_are_any() -> None:
    ours = streaming.Figures(rows_s=[400.0], latencies_s=[0.6], took_s=0.1)
    cut = streaming.Figures(rows_s=[200.0], latencies_s=[0.5], took_s=0.2)
    flows = streaming.Figures(rows_s=[800.0], latencies_s=[0.5])
    beside = {contest.peer.name: contest for contest in streaming.CONTESTS}
    batches, flink = beside["Structured Streaming"], beside["PyFlink"]
    bars = [*streaming.bars_of(batches, {"Holdfast": ours, batches.peer.name: cut})]
    assert [(bar.seen, bar.met) for bar in bars] == [(2.0, True), (0.5, True), (1.2, False)]
    (rows,) = streaming.bars_of(flink, {"Holdfast": ours, flink.peer.name: flows})
    assert (rows.seen, rows.met) == (0.5, False)


@pytest.mark.parametrize("kind", list(quoted.MOST))
def test_files_with_quotes_have_the_same_rows(tmp_path: Path, kind: str) -> None:
    lines = [",".join(f"{column}{n}" for column in COLUMNS) for n in range(250)]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    made = quoted.make(tmp_path, tmp_path / "made", kind)
    with (made / "rows.csv").open(newline="") as file:
        rows = list(csv.reader(file, strict=True))
    assert [row[0] for row in rows] == [line.split(",")[0] for line in lines]
    broken = [row for row in rows if "\n" in row[quoted.NAME]]
    assert len(broken) == (3 if kind == quoted.BREAKS else 0)
