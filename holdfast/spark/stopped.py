"""Wait until Spark's tasks have really stopped.

Spark ends a job that is cancelled at once, and tells its tasks to stop; one of them may still make
a file afterwards, behind the back of whoever has removed what was staged.
"""

import logging
import time
from typing import TYPE_CHECKING

from holdfast.connect.inside import figures

if TYPE_CHECKING:
    from pyspark import SparkContext

LONGEST_S = 10.0
LOOK_S = 0.02

log = logging.getLogger("holdfast")


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
