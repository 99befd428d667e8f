"""Find out which tables every stage of a job will see, without moving a row."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.connect.source import Budget
from holdfast.errors import UserError
from holdfast.model.job import JobPlan, Role, Stage, TaskPlan
from holdfast.model.table import Table
from holdfast.plan.plugins import build_plugin, context_for
from holdfast.worker.row_counts import RowCounts
from holdfast.worker.task_runner import TaskContext, TaskRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def expected_tables(
    job: JobPlan, registry: Registry, spark: "SparkSession", *, allow_python: bool = False
) -> dict[str, tuple[Table, ...]]:
    """Return each stage's tables; a stage whose source cannot tell before it runs is left out."""
    found: dict[str, dict[str, Table]] = {}
    for task in (task for pipeline in job.pipelines for task in pipeline.tasks):
        of_task = tables_of(job, task, registry, spark, allow_python=allow_python)
        for stage, tables in of_task.items():
            found.setdefault(stage, {}).update({str(t.path): t for t in tables})
    return {stage: tuple(tables.values()) for stage, tables in found.items()}


def tables_of(
    job: JobPlan,
    task: TaskPlan,
    registry: Registry,
    spark: "SparkSession",
    *,
    allow_python: bool = False,
    cancelled: Callable[[], bool] = lambda: False,
) -> Mapping[str, tuple[Table, ...]]:
    """Return the tables of each stage of a task, as Spark sees them."""
    running = TaskContext(job, "plan", registry, spark, RowCounts(), cancelled, allow_python)
    run = TaskRun(running, task, 1, {})
    try:
        return run.expected(Budget(None, time.monotonic()))
    finally:
        run.close()


def look_at_sinks(
    job: JobPlan, registry: Registry, tables: Mapping[str, Sequence[Table]]
) -> Iterator[tuple[Stage, UserError]]:
    """Yield what sinks refuse of the tables that Spark knows.

    Nothing is opened: whether there is room and right to write is for `check --connect`.
    """
    for task in (task for pipeline in job.pipelines for task in pipeline.tasks):
        for stage in (job.stage(s) for s in task.stages if job.stage(s).role is Role.SINK):
            sink = build_plugin(stage, registry, context_for(job, task, stage, "plan", False))
            assert isinstance(sink, Sink)
            for table in tables.get(stage.id, ()):
                try:
                    sink.refuse(table)
                except UserError as error:
                    yield stage, error
