"""Find out which tables every stage of a job will see, without moving a row."""

import time
from typing import TYPE_CHECKING

from holdfast.connect.registry import Registry
from holdfast.connect.source import Budget
from holdfast.model.job import Job
from holdfast.model.table import Table
from holdfast.worker.meter import Tally
from holdfast.worker.task import Running, TaskRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def expected_tables(
    job: Job, registry: Registry, spark: "SparkSession", *, allow_python: bool = False
) -> dict[str, tuple[Table, ...]]:
    """Return each stage's tables; a stage whose source cannot tell before it runs is left out."""
    running = Running(job, "plan", registry, spark, Tally(), lambda: False, allow_python)
    found: dict[str, dict[str, Table]] = {}
    for task in (task for pipeline in job.pipelines for task in pipeline.tasks):
        run = TaskRun(running, task, 1, {})
        for stage, tables in run.expected(Budget(None, time.monotonic())).items():
            found.setdefault(stage, {}).update({str(t.path): t for t in tables})
    return {stage: tuple(tables.values()) for stage, tables in found.items()}
