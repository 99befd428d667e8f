"""Holdfast runs SeaTunnel job files on Spark and keeps every job alive.

The names below are promised to connector authors; all else may change.  Read `connect/` first to
write a connector, `plan/` to follow a job file, `worker/` to see Spark move the rows.
"""

from holdfast.connect.options import option, options
from holdfast.connect.sink import Committable, Identifier, Sink, Staging
from holdfast.connect.source import END, IDLE, Budget, Slice, Source
from holdfast.connect.tables import Rows, Tables
from holdfast.connect.transform import Transform
from holdfast.errors import HoldfastError, OutcomeUnknown, Unavailable, UserError
from holdfast.model.job import Guarantee
from holdfast.model.secret import Secret
from holdfast.model.table import Column, Table, TablePath

__all__ = [
    "END",
    "IDLE",
    "Budget",
    "Column",
    "Committable",
    "Guarantee",
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
