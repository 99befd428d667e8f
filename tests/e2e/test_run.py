"""`holdfast run`: exit codes, output, cancel, and nothing half-written in view."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.conftest import Run, children, visible

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

TWO_SINKS = """
env { job.name = "two sinks", job.mode = BATCH }
source {
  FakeSource { plugin_output = fake, row.num = 50, schema { fields { id = bigint, name = string } }
  }
}
sink {
  LocalFile { plugin_input = fake, path = "PLACE/a", file_format_type = parquet }
  LocalFile { plugin_input = fake, path = "PLACE/b", file_format_type = parquet }
}
"""

STREAM = """
env { job.mode = STREAMING, checkpoint.interval = 500 }
source { FakeSource { row.num = 5, schema { fields { id = int } } } }
sink { Console {} }
"""

FAILS_LATE = """
env { job.mode = BATCH }
source { FakeSource { plugin_output = fake, row.num = 5, schema { fields { id = int } } } }
sink {
  LocalFile { plugin_input = fake, path = "PLACE/out", file_format_type = json }
  Assert { plugin_input = fake, rules { row_rules = [{ rule_type = MAX_ROW, rule_value = 1 }] } }
}
"""


def test_the_demo_job_moves_three_tables(holdfast: Run, tmp_path: Path) -> None:
    ran = holdfast("run", str(ROOT / "examples" / "shop.conf"))
    assert ran.returncode == 0, ran.stderr
    rows = {
        table: sum(
            pq.read_metadata(f).num_rows for f in visible(tmp_path / "build" / "demo" / table)
        )
        for table in ("customers", "orders", "products")
    }
    assert rows["customers"] == 100_000
    assert rows["products"] == 2_000
    assert 0 < rows["orders"] < 400_000
    said = f"read 502,000 rows, wrote {sum(rows.values()):,}, rejected 0."
    assert said in ran.stderr and "Job Statistic Information" not in ran.stderr
    place = tmp_path / "build" / "demo" / "orders"
    assert f"{rows['orders']:,}  shop.orders     LocalFile  {place}" in ran.stderr
    steps = [line for line in ran.stderr.partition("Next:")[2].splitlines() if "rows" in line]
    look = next(s for s in steps if "read_parquet" in s).rpartition("  shows rows")[0]
    shown = subprocess.run(["bash", "-c", look], cwd=tmp_path, capture_output=True, text=True)
    assert "[100000 rows x 3 columns]" in shown.stdout, shown.stderr


def test_two_sinks_see_the_same_rows(holdfast: Run, tmp_path: Path) -> None:
    (tmp_path / "job.conf").write_text(TWO_SINKS.replace("PLACE", str(tmp_path)))
    ran = holdfast("run", "-c", "job.conf", "--log-format", "json", "--log-file", "job.log")
    assert ran.returncode == 0, ran.stderr
    # -c is SeaTunnel's flag: whoever greps its statistics finds them.
    assert "Job Statistic Information" in ran.stderr
    assert f"Total Write Count         : {100:>19}" in ran.stderr
    one, other = (
        sorted(map(str, pq.read_table(visible(tmp_path / side)).to_pylist())) for side in "ab"
    )
    assert one == other
    assert len(one) == 50
    logged = [json.loads(line) for line in (tmp_path / "job.log").read_text().splitlines()]
    ended = next(line for line in logged if line["message"] == "job ended")
    assert (ended["status"], ended["read"], ended["written"]) == ("FINISHED", 50, 100)


def test_ctrl_c_cancels_and_leaves_nothing_running(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    (tmp_path / "job.conf").write_text(STREAM)
    process = start("run", "job.conf")
    assert process.stdout
    while "SeaTunnelRow#kind=INSERT" not in process.stdout.readline():
        assert process.poll() is None, process.stderr and process.stderr.read()
    below = children(process.pid)
    assert below, "Spark's Java process runs"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "was cancelled" in said
    assert "Traceback" not in said
    assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


def test_a_job_that_fails_shows_none_of_its_rows(holdfast: Run, tmp_path: Path) -> None:
    (tmp_path / "job.conf").write_text(FAILS_LATE.replace("PLACE", str(tmp_path)))
    ran = holdfast("run", "job.conf")
    assert ran.returncode == 1
    assert "MAX_ROW" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert visible(tmp_path / "out") == []


COPIES = """
env { job.mode = BATCH }
source {
  LocalFile {
    path = "PLACE/in", file_format_type = csv, row_error_handle_way = WAY
    schema { fields { id = int, name = string } }
  }
}
sink { LocalFile { path = "PLACE/out", file_format_type = json } }
"""


def test_a_row_that_does_not_fit_is_counted_or_ends_the_job_at_once(
    holdfast: Run, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text('1,"a\nb"\n2,c\nx3,d\n4\n')
    job = COPIES.replace("PLACE", str(tmp_path))
    (tmp_path / "job.conf").write_text(job.replace("WAY", "FAIL"))
    ran = holdfast("run", "job.conf", "--log-format", "json", "--log-file", "job.log")
    assert ran.returncode == 1
    place = f"Source[0]-LocalFile cannot read {tmp_path}/in/a.csv, line 4: column id = 'x3' is not"
    assert place in ran.stderr and "An error occurred while calling" not in ran.stderr
    assert "Traceback" not in ran.stderr and visible(tmp_path / "out") == []
    logged = [json.loads(line) for line in (tmp_path / "job.log").read_text().splitlines()]
    assert {line["attempt"] for line in logged if "attempt" in line} <= {1}, "tried again"
    (tmp_path / "job.conf").write_text(job.replace("WAY", "SKIP"))
    ran = holdfast("run", "-c", "job.conf")
    assert ran.returncode == 0, ran.stderr
    for name, rows in (("Read", 4), ("Write", 2), ("Rejected", 2)):
        assert f"Total {name} Count".ljust(26) + f": {rows:>19}" in ran.stderr
    assert "2 rows were left out: row_error_handle_way = SKIP" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run"], 2, "Give one job file"),
        (["run", "absent.conf"], 1, "Job file absent.conf does not exist."),
        (["run", "job.conf", "-m", "cluster"], 2, "for a cluster use holdfast submit"),
        (["run", "job.conf", "-i", "novalue"], 2, "novalue"),
        (["check", "job.conf"], 1, "Did you mean 'FakeSource'?"),
        (["connectors", "LocalFil"], 1, "Did you mean 'LocalFile'?"),
    ],
)
def test_mistakes_have_an_exit_code_and_a_sentence(
    holdfast: Run, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "job.conf").write_text("source { FakeSorce {} }\nsink { Console {} }\n")
    ran = holdfast(*arguments)
    assert ran.returncode == code, ran.stderr
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_sigterm_cancels_too(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    (tmp_path / "job.conf").write_text(STREAM)
    process = start("run", "job.conf")
    assert process.stdout
    while "SeaTunnelRow#kind=INSERT" not in process.stdout.readline():
        assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
