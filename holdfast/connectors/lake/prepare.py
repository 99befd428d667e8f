"""What a sink for tables may do once, with its first rows."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Literal

from holdfast.connect.sink import Committable
from holdfast.errors import UserError
from holdfast.model.tree import Plain


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


VERSION = 1

Mode = Literal["empty", "clear", "anew"]
"""Refuse a table with rows, remove the rows, or make the table anew."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the first commit of a life does to a table, before it adds rows.

    `shape` are the columns of a table that is made anew, as its format describes them.
    """

    where: str
    life: str
    mode: Mode
    shape: Plain = None

    @property
    def mark(self) -> str:
        """The user under whose number the table knows that this was done."""
        return mark_of(self.life)

    def committable(self, table: str) -> Committable:
        """Return this for a checkpoint."""
        content: Plain = asdict(self)
        return Committable(VERSION, table, 0, 0, content, opening=True)


def order_of(committable: Committable) -> Order:
    """Read what `Order.committable` made."""
    if committable.version != VERSION:
        raise UserError(
            f"Version {committable.version} of a save mode of {committable.table} is not known;"
            f" this is version {VERSION}.",
            code="sink.committable_version",
        )
    assert isinstance(committable.content, dict)
    return Order(**committable.content)  # type: ignore[arg-type]


def orders_of(committables: Iterable[Committable]) -> dict[str, Order]:
    """Return the save modes among committables: one for each place, the first that was given."""
    found = [order_of(c) for c in committables if c.opening]
    return {order.where: order for order in reversed(found)}


def mark_of(life: str) -> str:
    """Return the user under whose number tables know that a life has opened them."""
    return f"{life}.opened"


def mode_of(schema: SchemaSaveMode, data: DataSaveMode) -> Mode | None:
    """Return what the first commit does to the table; None if it only adds rows."""
    if schema is SchemaSaveMode.RECREATE_SCHEMA:
        return "anew"
    if data is DataSaveMode.DROP_DATA:
        return "clear"
    return "empty" if data is DataSaveMode.ERROR_WHEN_DATA_EXISTS else None


def data_exists(sink: str, where: str) -> UserError:
    """Return the error for a table that should have been empty."""
    return UserError(
        f"{sink} will not write to {where}: there are rows in it, and data_save_mode is"
        " ERROR_WHEN_DATA_EXISTS. Empty it, or choose APPEND_DATA or DROP_DATA.",
        code="sink.data_exists",
    )
