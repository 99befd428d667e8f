"""Calls of ours into Spark's JVM: one where PySpark would make dozens.

Each call costs both processes a third of a millisecond, and all this is asked for each slice.  The
other ends are `Copies` and `Figures` in `spark/jars`; one of each is kept for each Spark.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark import SparkContext


log = logging.getLogger("holdfast")


Work = Callable[[int, Iterator[str]], Iterable[bytes]]
"""What tasks do: given a task's number and its one line, yield lines."""

_copies: "WeakKeyDictionary[SparkContext, Any]" = WeakKeyDictionary()
_figures: "WeakKeyDictionary[SparkContext, Any]" = WeakKeyDictionary()
_lock = threading.Lock()


def run_tasks(context: "SparkContext", work: Work, lines: Sequence[str]) -> list[str]:
    """Have `work` called in a task for each line; return the lines it yields, in that order."""
    from pyspark import serializers

    if not lines:
        return []
    # The four things that Spark's Python workers look for in what they are sent.
    spark: Any = serializers
    parts = (work, None, spark.UTF8Deserializer(), spark.NoOpSerializer())
    sent = bytearray(spark.CloudPickleSerializer().dumps(parts))
    said: str = _kept(_copies, context, _make_copies).run(sent, "\n".join(lines))
    return said.split("\n")[:-1]


def figures(context: "SparkContext") -> Any:
    """Return the `Figures` of a Spark."""
    return _kept(_figures, context, _make_figures)


def _kept(
    kept: "WeakKeyDictionary[SparkContext, Any]",
    context: "SparkContext",
    make: "Callable[[SparkContext], Any]",
) -> Any:
    with _lock:
        if context not in kept:
            kept[context] = make(context)
        return kept[context]


def _make_copies(context: "SparkContext") -> Any:
    return _class(context, "Copies")(
        context._jsc, context.environment, context._python_includes, context.pythonExec,
        context.pythonVer, context._javaAccumulator,
    )  # fmt: skip


def _make_figures(context: "SparkContext") -> Any:
    return _class(context, "Figures")(context._jsc.sc())


def _class(context: "SparkContext", name: str) -> Any:
    from py4j.java_gateway import JavaClass

    gateway = context._gateway
    assert gateway is not None
    return JavaClass(f"holdfast.{name}", gateway._gateway_client)


LONGEST_S = 10.0
LOOK_S = 0.02


def wait_stopped(context: "SparkContext", group: str) -> None:
    """Return when no task of a group of jobs runs, or after so long."""
    from py4j.protocol import Py4JError

    deadline_s = time.monotonic() + LONGEST_S
    try:
        while figures(context).active(group):
            if time.monotonic() > deadline_s:
                log.warning("tasks of %s do not stop; what they stage may stay", group)
                return
            time.sleep(LOOK_S)
    except (Py4JError, OSError) as error:
        log.info("Spark is gone, and its tasks with it: %s", error)
