"""Rows that a transform leaves out, counted by Spark's own tasks on their way."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


class LeftOut:
    """How many rows of one slice a transform has left out.

    Tasks count for each part of a stage (`Rejected.java`), so what Spark reads twice counts once.
    """

    def __init__(self, spark: "SparkSession") -> None:
        java: Any = spark._jvm
        self._counts = getattr(java.holdfast, "Rejected$Counts")()
        context: Any = spark.sparkContext._jsc
        context.sc().register(self._counts)
        self._stays = java.holdfast.Rejected.staying(self._counts)
        self._total = 0

    def stays(self, broken: "Column") -> "Column":
        """Return whether a row stays, given whether it breaks a rule; one that does not counts."""
        from pyspark.sql.classic.column import Column, _to_seq
        from pyspark.sql.utils import get_active_spark_context

        column: Any = broken
        columns = _to_seq(get_active_spark_context(), [column._jc])
        found: Column = Column(self._stays.apply(columns))
        return found

    @property
    def value(self) -> int:
        """Rows left out by the tasks that have ended."""
        return int(self._counts.total()) if self._counts is not None else self._total

    def close(self) -> None:
        """Count no further; the sum stays.  May be repeated."""
        self._total = self.value
        self._counts = None
