"""Make the start-up cache: run what jobs commonly do on a JVM that records itself.

Run as `python -m holdfast.spark.training [--background]`; see `startup_cache.py` for who does.
"""

import fcntl
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.connect.inside import figures, run_tasks
from holdfast.errors import HoldfastError, Unavailable
from holdfast.files import state_dir
from holdfast.spark import java, startup_cache
from holdfast.spark import session as driver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow
    from pyspark import Accumulator
    from pyspark.sql import SparkSession

WRITE_S_MAX = 1800
"""How long the JVM may take to write the cache; at low priority on a busy machine it waits."""

_ROWS = """
    select id, id * 2 as twice, cast(id as string) as word, id * 0.5D as half,
           timestamp_seconds(id) as at, date_from_unix_date(cast(id as int)) as day,
           cast(id as decimal(18, 4)) as price, array(id) as many, id % 2 = 0 as even
    from range(2000)
"""
_FLAT = "select id, twice, word, half, at, day, price, even from written"
_CHANGE = """
    select id + 1 as id, upper(word) as word, coalesce(half, 0) as half, at, price,
           case when even then 'even' else 'odd' end as kind
    from written where id % 3 = 1 and word not like '9%'
"""


def main(words: list[str]) -> int:
    """Make the cache unless it is there or in the making; return an exit code."""
    cache = startup_cache.cache_path(java.find())
    background = "--background" in words
    if background:
        os.nice(19)
    with (state_dir.cache() / "training.lock").open("wb") as lock:
        try:
            # Who asked for the cache and waits for it, waits for another that is making it.
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if background else 0))
        except OSError:
            return 0  # another process is making it
        if startup_cache.is_whole(cache):
            return 0
        # Taken back when the cache is in place, so that any way to fail leaves it.
        startup_cache.failure_note(cache).touch()
        try:
            _make(cache)
        except HoldfastError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def _make(cache: Path) -> None:
    for left in cache.parent.glob(f"{cache.stem}.new*"):
        left.unlink()  # a trainer was killed; we hold its lock now
    fresh = cache.with_suffix(f".new{cache.suffix}")
    starting = driver.begin_recording(fresh, startup_cache.log_file())
    try:
        session = starting.session()
        with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
            work(session, Path(folder))
        session.stop()
        starting.jvm.close(WRITE_S_MAX)
    finally:
        driver.stop(starting)
    if not fresh.exists():
        raise Unavailable(
            f"The JVM wrote no cache. Its log is {startup_cache.log_file()}.", code="aot.none"
        )
    startup_cache.publish(fresh, cache)


def work(session: "SparkSession", folder: Path) -> None:
    """Do a little of everything that jobs do: files in, SQL, files out, a Python stage."""
    for form in ("parquet", "csv", "json", "orc"):
        rows = session.sql(_ROWS)
        rows.createOrReplaceTempView("written")
        if form == "csv":
            rows = session.sql(_FLAT)
        path = str(folder / form)
        rows.write.format(form).save(path)
        read = session.read.format(form).schema(rows.schema).load(path)
        read.createOrReplaceTempView("written")
        session.sql(_CHANGE).write.format(form).save(f"{path}-changed")
    session.sql("select word, count(*) as n from written group by word order by n").toArrow()
    session.read.parquet(str(folder / "parquet")).mapInArrow(_same, _SCHEMA).toArrow()
    context = session.sparkContext
    for _ in range(3):  # as plain copies run
        counter = context.accumulator(0)
        run_tasks(context, _Counting(counter), ["a", "b"])
        figures(context).of("")


_SCHEMA = (
    "id long, twice long, word string, half double, at timestamp, day date,"
    " price decimal(18, 4), many array<long>, even boolean"
)


def _same(batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    yield from batches


class _Counting:
    """Counts what passes through."""

    def __init__(self, counter: "Accumulator[int]") -> None:
        self.counter = counter

    def __call__(self, _number: int, items: "Iterable[str]") -> "Iterator[bytes]":
        for item in items:
            self.counter.add(1)
            yield item.encode()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
