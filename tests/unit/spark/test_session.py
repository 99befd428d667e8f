"""Spark from start to stop, in a process of its own: PySpark knows only one at a time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import Unavailable
from holdfast.files import state_dir
from holdfast.spark import session

LIFE = """
import gc, os, subprocess, sys, time
from pathlib import Path
from holdfast.errors import Unavailable
from holdfast.files import state_dir as home
from holdfast.spark import session as driver

def below():
    listed = subprocess.run(["ps", "-eo", "sid,pid,stat,args"], capture_output=True, text=True)
    lines = [line.split(None, 3) for line in listed.stdout.splitlines()]
    return [
        (pid, stat, args) for sid, pid, stat, args in lines
        if sid == str(os.getsid(0)) and int(pid) != os.getpid() and stat[0] != "Z"
        and not args.startswith("ps ")
    ]

def same(batches):
    import pandas  # already there: the daemon imported it
    yield from batches

log = Path(sys.argv[1]) / "spark.log"
starting = driver.begin({"spark.app.name": "life"}, 2, log)
spark = starting.session()
assert starting.session() is spark
assert spark.sparkContext.master == "local[2,3]" and spark.sparkContext.appName == "life"
assert spark.range(5).selectExpr("sum(id)").collect()[0][0] == 10
assert "pandas" not in sys.modules, "pandas came in, and it is slow"
assert spark.range(5).mapInArrow(same, "id long").count() == 5
assert Path(spark.conf.get("spark.local.dir")).is_relative_to(home.root())
assert "daemon" in subprocess.run(["ps", "-ef"], capture_output=True, text=True).stdout
try:
    spark.sql("select cast('x' as int)").collect()
except Exception as error:
    assert "CAST_INVALID_INPUT" in str(error)
began = time.monotonic()
driver.stop(starting)
driver.stop(starting)
assert time.monotonic() - began < 5, "stopping is quick"
assert starting.loss() is not None
assert not below(), below()
assert not list((home.root() / "spark-local").glob("holdfast-*"))

again = driver.begin({}, 1, log)
assert again.session().range(7).count() == 7
frame = again.session().range(2)
again.jvm.process.kill()
try:
    frame.count()
except Exception as error:
    assert not isinstance(error, AssertionError)
loss = again.loss(10)
assert isinstance(loss, Unavailable) and "signal 9" in str(loss), loss
driver.stop(again)
del frame, spark
gc.collect()
assert not below(), below()
print("lived")
"""


@pytest.mark.spark
def test_spark_starts_works_stops_and_starts_again(tmp_path: Path) -> None:
    program = tmp_path / "life.py"
    program.write_text(LIFE)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "cache").symlink_to(state_dir.cache())  # a warm start, where there is one
    environ = {**os.environ, "HOLDFAST_HOME": str(tmp_path / "home")}
    ran = subprocess.run(
        [sys.executable, "-W", "error", program, tmp_path],
        capture_output=True,
        text=True,
        env=environ,
        start_new_session=True,
        timeout=500,
        check=False,
    )
    # Nothing of Spark reaches the terminal: neither its log, nor its errors, nor its end.
    assert ran.stderr == ""
    assert ran.stdout == "lived\n"
    assert (tmp_path / "spark.log").read_text()


def test_a_jvm_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    asked = {"spark.driver.extraJavaOptions": "-Xmx1k"}
    starting = session.begin(asked, 1, tmp_path / "spark.log")
    try:
        with pytest.raises(
            Unavailable, match=r"(?s)ended with code 1\..*during initialization of VM"
        ):
            starting.session()
    finally:
        session.stop(starting)
    assert not list((state_dir.root() / "spark-local").glob("holdfast-*"))


def test_a_spark_that_is_not_needed_after_all_is_gone_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    starting = session.begin({}, 1, tmp_path / "spark.log")
    session.stop(starting)
    assert not starting.jvm.is_alive
    with pytest.raises(Unavailable, match="killed by signal 9"):
        starting.session()
