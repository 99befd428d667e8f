"""What people see of the benchmarks: tables, bars, plots and the page, from what a run found."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from benchmarks import failover, performance, run
from benchmarks.catalogue import USUAL_MINUTES
from benchmarks.performance import Run, load, page, write
from benchmarks.report import Bar, Plot, Report, cell, publish, shown, table_lines
from benchmarks.svg import draw, ticks, word_width
from tests.chaos.engine.failover import Cost, Sample

SVG = "{http://www.w3.org/2000/svg}"

CASES = ("parquet to parquet", "csv to parquet", "parquet to PostgreSQL", "PostgreSQL to parquet")
PEERS = ("Holdfast", "PySpark script", "dlt", "PyFlink", "Spark Structured Streaming", "SeaTunnel",
         "Holdfast without checkpoints")  # fmt: skip
KILLS = [(n, 2.0 + n % 7 / 5) for n in range(1, 31)]
PLOTS = {
    "bars": Plot("Rows a second", "bars", "rows/s",
                 {p: [(c, 1e6 / (i + 1)) for c in CASES] for i, p in enumerate(PEERS)}),
    "bars with gaps": Plot("Idle", "bars", "CPU %", {"a": [("x", 0.0)], "b": [("y", 3.25)]}),
    "a long name": Plot("Sinks", "bars", "s", {"a": [("a word " * 20, 3.0), ("b", 12345.0)]}),
    "lines over decades": Plot("Takeover", "lines", "seconds",
                               {s: [(10, 0.1), (100, 0.5), (1000, 4.2), (10000, 9.0)]
                                for s in ("SQLite", "etcd", "PostgreSQL")}, "jobs"),
    "crowded decades": Plot("Jobs", "lines", "s",
                            {"a": [(1000, 1.0), (1010, 2.0), (1100, 3.0), (250_000, 4.0)]}),
    "lines over words": Plot("Safety", "lines", "share", {"a": [("1 s", 0.96), ("none", 1.0)]}),
    "one point": Plot("One", "lines", "s", {"a": [(5, 0.0)]}),
    "dots": Plot("Kills", "dots", "seconds after the kill",
                 {"another master leads": KILLS, "first order": KILLS, "checkpoint": KILLS},
                 "kill"),
    "dots over words": Plot("Arrival to visible", "dots", "seconds",
                            {p: [(w, y) for w in ("files", "Delta") for _, y in KILLS]
                             for p in PEERS}),
}  # fmt: skip

REPORT = Report(
    name="copy",
    question="How fast is a copy?",
    data="10 rows.",
    rounds=3,
    peers={"Holdfast": "0.1", "dlt": "1.2"},
    table=[
        {"copy": "a | b", "rows/s": 1234567.8, "ratio": 0.951},
        {"copy": "c", "rows/s": None, "why": "needs a jar that is not on PyPI"},
    ],
    bars=[Bar("ratio", 0.9496, 0.95, "least"), Bar("seconds", 3.0, 3.5, "most")],
    plots=[PLOTS["bars"], PLOTS["dots"]],
    profile="most of it in write()",
)
MACHINE = {"cores": "2", "memory": "8 GiB", "system": "Linux", "Python": "3.11", "Java": "25",
           "Spark": "4.3"}  # fmt: skip
RUN = Run(REPORT, "2026-11-16 09:00 UTC", MACHINE)


def box(text: ET.Element) -> tuple[float, float, float, float]:
    """Return the room a text takes: left, top, right, bottom."""
    x, y, wide = float(text.get("x", "")), float(text.get("y", "")), word_width(text.text or "")
    left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor", "")] * wide
    return left, y - 9, left + wide, y + 3


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_a_plot_shows_all_its_series_and_points(plot: Plot) -> None:
    root = ET.fromstring(draw(plot))
    said = [t.text for t in root.iter(f"{SVG}text")]
    assert {plot.title, plot.unit, *plot.series} <= set(said)
    points = sum(len(p) for p in plot.series.values())
    mark = "rect" if plot.kind == "bars" else "circle"
    drawn = list(root.iter(f"{SVG}{mark}"))
    legend = len(plot.series) + 1  # and the page itself
    assert len(drawn) == points + (legend if plot.kind == "bars" else 0)
    assert len(list(root.iter(f"{SVG}polyline"))) == (plot.kind == "lines") * len(plot.series)


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_no_words_of_a_plot_run_into_others_or_out_of_it(plot: Plot) -> None:
    root = ET.fromstring(draw(plot))
    _, _, width, height = map(float, root.get("viewBox", "").split())
    texts = list(root.iter(f"{SVG}text"))
    for text in texts:
        left, top, right, bottom = box(text)
        assert left >= 0 and top >= 0 and right <= width and bottom <= height, text.text
    for one, other in combinations(texts, 2):
        a, b = box(one), box(other)
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, f"{one.text!r} runs into {other.text!r}"


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_every_mark_lies_inside_the_picture(plot: Plot) -> None:
    root = ET.fromstring(draw(plot))
    _, _, width, height = map(float, root.get("viewBox", "").split())
    for c in root.iter(f"{SVG}circle"):
        assert 0 < float(c.get("cx", "")) < width and 0 < float(c.get("cy", "")) < height
    for r in root.iter(f"{SVG}rect"):
        assert float(r.get("x", "")) + float(r.get("width", "")) <= width


def test_a_longer_bar_is_a_larger_value() -> None:
    root = ET.fromstring(draw(Plot("t", "bars", "s", {"a": [("x", 1.0), ("y", 2.0)]})))
    widths = [float(r.get("width", "")) for r in root.iter(f"{SVG}rect")][2:]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2)


def test_words_that_mean_something_in_xml_are_shown_as_they_are() -> None:
    root = ET.fromstring(draw(Plot("a < b & c", "bars", "s", {"<x>": [("&", 1.0)]})))
    assert {"a < b & c", "<x>", "&"} <= {t.text for t in root.iter(f"{SVG}text")}


def test_a_plot_without_points_is_refused() -> None:
    with pytest.raises(ValueError, match="'t' has no points"):
        draw(Plot("t", "dots", "s", {"a": []}))


@pytest.mark.parametrize("most", [0.0, 0.003, 0.97, 1.0, 3.4, 5.0, 99.0, 1_250_000.0])
def test_an_axis_ends_at_or_past_the_largest_value(most: float) -> None:
    found = ticks(most)
    assert found[0] == 0 and found[-1] >= most and 2 <= len(found) <= 8


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "-"), ("x", "x"), (12000, "12,000"), (1234.5, "1,234"), (12.34, "12.3"),
     (1.234, "1.23"), (0.0123, "0.012"), (0.0, "0.00"), (True, "yes")],
)  # fmt: skip
def test_a_cell_has_as_many_digits_as_it_is_worth(value: str | float | None, words: str) -> None:
    assert cell(value) == words


def test_a_table_has_every_column_that_any_row_has() -> None:
    head, rule, first, second = table_lines(REPORT.table)
    assert head.split() == ["copy", "rows/s", "ratio", "why"]
    assert set(rule) == {"-", " "}
    assert first.split() == ["a", "|", "b", "1,234,568", "0.95", "-"]
    assert second.startswith("c ") and "needs a jar" in second
    assert table_lines([]) == []


def test_a_missed_bar_is_printed_as_missed() -> None:
    said = shown(REPORT)
    assert "MISSED ratio: 0.9496 (at least 0.95)" in said
    assert "met    seconds: 3 (at most 3.5)" in said
    assert "Holdfast 0.1, dlt 1.2" in said and "most of it in write()" in said


def test_a_figure_that_is_no_number_meets_no_bar() -> None:
    assert not Bar("x", float("nan"), 1.0, "least").met
    assert not Bar("x", float("nan"), 1.0, "most").met


def test_what_is_published_is_what_the_page_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert publish(REPORT, tmp_path) is False
    assert "MISSED" in capsys.readouterr().out
    found = load(tmp_path / "copy.json").report
    assert page([replace(RUN, report=found)], []) == page([RUN], [])
    assert [draw(plot) for plot in found.plots] == [draw(plot) for plot in REPORT.plots]
    raw = json.loads((tmp_path / "copy.json").read_text())
    assert raw["command"] == "make bench ONLY=copy"
    assert [b["met"] for b in raw["bars"]] == [False, True]


def test_a_file_of_another_shape_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "copy.json").write_text('[{"copy": "a"}]')
    with pytest.raises(ValueError, match=r"run `make bench ONLY=copy` again"):
        load(tmp_path / "copy.json")


def test_the_page_says_all_that_a_sceptic_asks(tmp_path: Path) -> None:
    (tmp_path / "images/performance").mkdir(parents=True)
    (tmp_path / "images/performance/old-1.svg").write_text("<svg/>")
    other = replace(RUN, report=replace(REPORT, name="sinks", plots=[], bars=[], profile=""))
    write([RUN, other], ["streaming"], tmp_path)
    said = (tmp_path / "performance.md").read_text()
    for words in ("How fast is a copy?", "`make bench ONLY=copy`", "10 rows.",
                  "Holdfast 0.1, dlt 1.2", "1,234,568", "**MISSED**: ratio: 0.9496 (at least 0.95)",
                  "- met: seconds", "most of it in write()", "2 cores, 8 GiB", "Java 25",
                  "2026-11-16 09:00 UTC", "not run: streaming", "1 of 2", "a \\| b"):  # fmt: skip
        assert words in said, words
    pictures = {p.name for p in (tmp_path / "images/performance").iterdir()}
    assert pictures == {"copy-1.svg", "copy-2.svg"}
    assert all(f"(images/performance/{name})" in said for name in pictures)


def test_the_page_says_so_if_a_missed_bar_has_no_profile() -> None:
    silent = replace(RUN, report=replace(REPORT, profile=""))
    assert "made no profile" in page([silent], [])


def test_machines_that_differ_are_told_apart() -> None:
    other = replace(RUN, report=replace(REPORT, name="sinks"), machine=MACHINE | {"cores": "64"})
    said = page([RUN, other], [])
    assert "2 cores" in said and "(copy)." in said and "64 cores" in said and "(sinks)." in said


def test_without_results_the_page_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(performance, "RESULTS", tmp_path)
    monkeypatch.setattr(performance, "ROOT", tmp_path)
    assert performance.main() == 2
    assert "make bench" in capsys.readouterr().out
    assert not (tmp_path / "docs").exists()


def test_a_summary_tells_missed_from_broken(tmp_path: Path) -> None:
    publish(REPORT, tmp_path)
    made = (tmp_path / "copy.json").stat().st_mtime
    ran = run.Ran("copy", made - 1, good=False, took_s=90.0)
    first, *missed = run.outcome(ran, tmp_path)
    assert first.split() == ["copy", "1", "of", "2", "bars", "met", "in", "1.5", "minutes"]
    assert [m.strip() for m in missed] == ["MISSED ratio: 0.9496 (at least 0.95)"]
    older = run.outcome(replace(ran, began=made + 1), tmp_path)
    assert "BROKEN" in older[0], "a result from before is none"
    assert "BROKEN" in run.outcome(replace(ran, name="sinks"), tmp_path)[0]


def test_a_benchmark_that_breaks_after_its_result_is_broken(tmp_path: Path) -> None:
    publish(replace(REPORT, bars=REPORT.bars[1:]), tmp_path)
    ran = run.Ran("copy", 0.0, good=False, took_s=1.0)
    assert "BROKEN" in run.outcome(ran, tmp_path)[-1]
    assert len(run.outcome(replace(ran, good=True), tmp_path)) == 1


def test_an_unknown_benchmark_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["sinks,nonsense"]) == 2
    said = capsys.readouterr().out
    assert "no benchmark nonsense" in said and "failover" in said


def kill(elect_s: float, rows_s: float) -> Cost:
    return Cost(elect_s - 0.1, elect_s, elect_s + 0.1, elect_s + 1, elect_s + 2, rows_s, 100.0)


def test_kills_are_held_against_their_bounds(tmp_path: Path) -> None:
    good = Sample((kill(2.0, 100.0), kill(3.0, 98.0), kill(4.9, 60.0)), 0, ())
    report = failover.answer(good)
    assert report.met
    election = report.table[1]
    assert (election["p50"], election["max"]) == (3.0, 4.9)
    assert report.bars[-1].seen == pytest.approx(0.02)
    draw(report.plots[0])
    failover.write_raw(good, tmp_path / "raw.csv")
    head, *lines = (tmp_path / "raw.csv").read_text().splitlines()
    assert head.startswith("kill,detect_s,elect_s,") and len(lines) == 3


@pytest.mark.parametrize(
    ("sample", "missed"),
    [
        (Sample((kill(3.6, 100.0),), 0, ()), "kill to another leader, p50, s"),
        (Sample((kill(2.0, 100.0), kill(2.0, 100.0), kill(5.5, 100.0)), 0, ()),
         "kill to next checkpoint, max, s"),
        (Sample((kill(2.0, 100.0),), 1, ()), "tasks restarted"),
        (Sample((kill(2.0, 100.0),), 0, ("I1",)), "promises broken, as the oracle says"),
        (Sample((kill(2.0, 90.0),), 0, ()), "rows missing in 10 s, p50, share"),
    ],
)  # fmt: skip
def test_each_bound_of_a_failover_can_be_missed(sample: Sample, missed: str) -> None:
    assert [b.what for b in failover.answer(sample).bars if not b.met] == [missed]


def test_every_benchmark_of_the_catalogue_is_there() -> None:
    folder = Path(performance.__file__).parent
    assert [n for n in USUAL_MINUTES if "def main(results: Path) -> bool:" not in
            (folder / f"{n}.py").read_text()] == []  # fmt: skip
