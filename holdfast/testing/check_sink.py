"""Does a sink keep the contract?  `check_sink(make_world)` says so, in one line.

Each check is a function named for the promise it checks; a failure says which promise was broken
and what was seen.  A test runner may run them one by one:

    def open_sink(folder: Path) -> Sink[Any]:
        return MySink(MyOptions(path=str(folder)), context)

    @pytest.mark.parametrize("check", SINK_CHECKS, ids=lambda check: check.__name__)
    def test_my_sink(check: SinkCheck, spark: SparkSession, tmp_path: Path) -> None:
        open = functools.partial(open_sink, tmp_path)
        run_sink_check(check, SinkWorld(spark, open, lambda: read_with_another_library(tmp_path)))

The sink must take rows (id bigint, name string) of a table `db.rows` and only add them.
"""

from collections.abc import Callable

from holdfast.testing import sink_bounds, sink_crashes, sink_openings, sink_rivals
from holdfast.testing.sink_bench import SinkBench
from holdfast.testing.sink_bench import SinkWorld as SinkWorld

SinkCheck = Callable[[SinkBench], None]

SINK_CHECKS: tuple[SinkCheck, ...] = (
    *sink_crashes.CHECKS,
    *sink_rivals.CHECKS,
    *sink_bounds.CHECKS,
    *sink_openings.CHECKS,
)


def check_sink(make_world: Callable[[], SinkWorld]) -> None:
    """Run all checks, each in a world of its own; raise the first failure."""
    for check in SINK_CHECKS:
        run_sink_check(check, make_world())


def run_sink_check(check: SinkCheck, world: SinkWorld) -> dict[str, float]:
    """Run one check in a world that nothing has happened in; return what it measured."""
    bench = SinkBench(world)
    try:
        bench.prepare()
        check(bench)
    except BaseException as error:
        error.add_note(f"in the sink check {getattr(check, '__name__', check)}: {check.__doc__}")
        raise
    return bench.figures
