"""What sinks share that may find a table or a folder there: the save modes of a job file."""

from enum import StrEnum

from holdfast.errors import UserError


class SchemaSaveMode(StrEnum):
    """What to do about the table, or the folder, before the first row."""

    RECREATE_SCHEMA = "RECREATE_SCHEMA"
    CREATE_SCHEMA_WHEN_NOT_EXIST = "CREATE_SCHEMA_WHEN_NOT_EXIST"
    ERROR_WHEN_SCHEMA_NOT_EXIST = "ERROR_WHEN_SCHEMA_NOT_EXIST"
    IGNORE = "IGNORE"

    @property
    def creates(self) -> bool:
        """Whether a table that is missing is created."""
        return self in (SchemaSaveMode.RECREATE_SCHEMA, SchemaSaveMode.CREATE_SCHEMA_WHEN_NOT_EXIST)


class DataSaveMode(StrEnum):
    """What to do about rows, or files, that are there before the first row."""

    DROP_DATA = "DROP_DATA"
    APPEND_DATA = "APPEND_DATA"
    ERROR_WHEN_DATA_EXISTS = "ERROR_WHEN_DATA_EXISTS"


def data_exists(sink: str, where: object, what: str = "rows") -> UserError:
    """Return the error for a table or a folder that should have been empty."""
    return UserError(
        f"{sink} will not write to {where}: there are {what} in it, and data_save_mode is"
        " ERROR_WHEN_DATA_EXISTS. Empty it, or choose APPEND_DATA or DROP_DATA.",
        code="sink.data_exists",
    )
