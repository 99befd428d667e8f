"""Holdfast runs SeaTunnel job files on Spark and keeps every job alive.

The names below are promised to connector authors; all else may change.  Read `connect/` first to
write a connector, `plan/` to follow a job file, `worker/` to see Spark move the rows.
"""

import importlib
from importlib import metadata
from typing import TYPE_CHECKING, Any

from holdfast.connect.options import option, options
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import CommitEvent, CommitId, Committable, Sink, Staging
from holdfast.connect.source import END, IDLE, Budget, Slice, Source
from holdfast.connect.transform import Transform
from holdfast.errors import (
    HoldfastError,
    JobFileError,
    OutcomeUnknown,
    Unavailable,
    UserError,
)
from holdfast.model.job import Guarantee
from holdfast.model.secret import Secret
from holdfast.model.table import Column, Table, TablePath

if TYPE_CHECKING:
    from holdfast.cli.python_run import run
    from holdfast.cli.python_submit import submit
    from holdfast.client import Client
    from holdfast.process.run_result import RunResult, TableResult

    __version__: str

__all__ = [
    "END",
    "IDLE",
    "Budget",
    "Client",
    "Column",
    "CommitEvent",
    "CommitId",
    "Committable",
    "Guarantee",
    "HoldfastError",
    "JobFileError",
    "OutcomeUnknown",
    "Rows",
    "RunResult",
    "Secret",
    "Sink",
    "Slice",
    "Source",
    "Staging",
    "Table",
    "TablePath",
    "TableResult",
    "Tables",
    "Transform",
    "Unavailable",
    "UserError",
    "option",
    "options",
    "run",
    "submit",
]


LATE = {
    "Client": "holdfast.client",
    "RunResult": "holdfast.process.run_result",
    "TableResult": "holdfast.process.run_result",
    "run": "holdfast.cli.python_run",
    "submit": "holdfast.cli.python_submit",
}


def __getattr__(name: str) -> Any:
    """Load what is large when somebody asks for it: a connector needs neither HTTP nor a run."""
    if name in LATE:
        return getattr(importlib.import_module(LATE[name]), name)
    if name == "__version__":
        return metadata.version("holdfast")
    raise AttributeError(f"module 'holdfast' has no attribute '{name}'")
