"""Holdfast runs SeaTunnel job files on Spark and keeps every job alive.

The names below are promised to connector authors; all else may change.  Read `connect/` first to
write a connector, `plan/` to follow a job file, `worker/` to see Spark move the rows.
"""

import importlib
from typing import TYPE_CHECKING, Any

from holdfast.connect.options import option, options
from holdfast.connect.sink import Committable, Heard, Identifier, Sink, Staging
from holdfast.connect.source import END, IDLE, Budget, Slice, Source
from holdfast.connect.tables import Rows, Tables
from holdfast.connect.transform import Transform
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable, UserError
from holdfast.model.job import Guarantee
from holdfast.model.secret import Secret
from holdfast.model.table import Column, Table, TablePath

if TYPE_CHECKING:
    from holdfast.node.client import Client

__all__ = [
    "END",
    "IDLE",
    "Budget",
    "Client",
    "Column",
    "Committable",
    "Guarantee",
    "Heard",
    "HoldfastError",
    "Identifier",
    "OutcomeUnknown",
    "Rows",
    "Secret",
    "Sink",
    "Slice",
    "Source",
    "Staging",
    "Table",
    "TablePath",
    "Tables",
    "Transform",
    "Unavailable",
    "UserError",
    "option",
    "options",
]


def __getattr__(name: str) -> Any:
    """Load the client when somebody asks for it: a connector needs no HTTP."""
    if name == "Client":
        return importlib.import_module("holdfast.node.client").Client
    raise AttributeError(f"module 'holdfast' has no attribute '{name}'")
