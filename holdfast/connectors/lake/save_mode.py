"""What a sink for tables may do once, before the first row."""

from enum import StrEnum


class SchemaSaveMode(StrEnum):
    """What to do about the table."""

    RECREATE_SCHEMA = "RECREATE_SCHEMA"
    CREATE_SCHEMA_WHEN_NOT_EXIST = "CREATE_SCHEMA_WHEN_NOT_EXIST"
    ERROR_WHEN_SCHEMA_NOT_EXIST = "ERROR_WHEN_SCHEMA_NOT_EXIST"
    IGNORE = "IGNORE"

    @property
    def creates(self) -> bool:
        """Whether a table that is missing is created."""
        return self in (SchemaSaveMode.RECREATE_SCHEMA, SchemaSaveMode.CREATE_SCHEMA_WHEN_NOT_EXIST)


class DataSaveMode(StrEnum):
    """What to do about rows that are there."""

    DROP_DATA = "DROP_DATA"
    APPEND_DATA = "APPEND_DATA"
    ERROR_WHEN_DATA_EXISTS = "ERROR_WHEN_DATA_EXISTS"
