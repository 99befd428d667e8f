"""The library that reads and writes Iceberg's metadata, which is not always there."""

from typing import Any

from holdfast.connect.library import load_library


def iceberg(module: str) -> Any:
    """Return a module of the library; UserError that says how to get it where it is missing."""
    return load_library(f"pyiceberg.{module}", "Iceberg", "iceberg")


def troubles(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """Return what catalogs and file systems raise when they fail; all else is a bug."""
    errors = iceberg("exceptions")
    sql = load_library("sqlalchemy.exc", "Iceberg", "iceberg")
    return (
        errors.RESTError, errors.WaitingForLockException, sql.SQLAlchemyError, OSError, *more,
    )  # fmt: skip
