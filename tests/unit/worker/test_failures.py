"""What Spark raises becomes one sentence that says who must do what."""

import pytest
from pyspark.errors import PySparkException

from holdfast.errors import SourceLocation, Unavailable, UserError
from holdfast.model.job import Role, Stage
from holdfast.model.tree import Block
from holdfast.worker.failures import explain

HERE = SourceLocation("job.conf", 9, 1)
SINK = Stage("Sink[0]-Console", Role.SINK, "Console", Block((), HERE), (), None, 1, HERE)

CALLED = """An error occurred while calling o45.load.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:4568)
Caused by: java.lang.IllegalArgumentException: nanos > 999999999 or < 0
\tat java.sql/java.sql.Timestamp.setNanos(Unknown Source)
"""

PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 7, in main
    process()
pyarrow.lib.ArrowTypeError: Expected bytes, got a 'int' object
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CALLED, "IllegalArgumentException: nanos > 999999999 or < 0"),
        (PYTHON, "ArrowTypeError: Expected bytes, got a 'int' object"),
        ("An error occurred while calling o1.x.\n", "Spark failed and gave no reason"),
        ("", "Spark failed and gave no reason"),
    ],
)
def test_the_innermost_cause_is_said_and_no_stack(text: str, said: str) -> None:
    error = explain(PySparkException(message=text), SINK)
    assert isinstance(error, Unavailable)
    assert str(error) == f"Sink[0]-Console (job.conf:9:1): {said}"


def test_a_sentence_that_names_its_stage_is_blamed_on_that_stage() -> None:
    said = "Source[0]-LocalFile cannot read file a.parquet: column n = '1.9' is not an int."
    text = f"[USER_RAISED_EXCEPTION] {said} SQLSTATE: P0001"
    error = explain(PySparkException(message=text), SINK)
    assert isinstance(error, UserError)
    assert str(error) == said


def test_a_task_that_refuses_a_row_is_no_failure_to_try_again() -> None:
    said = "Source[0]-LocalFile cannot read file a.json, line 2: it is no JSON object. Row: x."
    text = f"Traceback (most recent call last):\nholdfast.errors.UserError: {said}\n\n\tat java"
    error = explain(PySparkException(message=text), SINK)
    assert isinstance(error, UserError)
    assert str(error) == said
