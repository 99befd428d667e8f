"""What a sink for tables may do once, with its first rows."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

from holdfast.connect.sink import Committable
from holdfast.connectors.committables import CommittableCheck, StagedFile
from holdfast.connectors.lake.staging import HIDDEN
from holdfast.connectors.save_modes import DataSaveMode, SchemaSaveMode
from holdfast.model.tree import Plain

VERSION = 1

Mode = Literal["empty", "clear", "anew"]
"""Refuse a table with rows, remove the rows, or recreate the table."""


class StagedInTable(Protocol):
    """What one write left out of sight in the folder of a table."""

    @property
    def url(self) -> str:
        """Where the table is."""

    @property
    def folder(self) -> str:
        """The staging folder, below it."""

    @property
    def files(self) -> Sequence[StagedFile]:
        """The files."""


@dataclass(frozen=True, slots=True)
class TableOrder:
    """What the first commit of an incarnation (`life`) does to a table, before it adds rows.

    `shape` are the columns of a table that is recreated, as its format describes them.
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


def order_of(check: CommittableCheck, given: Mode | None, place: str = "") -> TableOrder:
    """Read what `TableOrder.committable` made; its shape is yet to be looked at.

    `given` is what the options ask for, and `place` where, if they alone can tell.
    """
    order = check.content(TableOrder, VERSION)
    check.of_life(order.life)
    check.mode(order.mode, given)
    if place:
        check.place(order.where, place)
    check.require(order.shape is None or order.mode == "anew", "it keeps the columns of the table")
    return order


def check_staged(check: CommittableCheck, staged: StagedInTable, place: str) -> None:
    """Refuse files that were not staged for a table that is where the options say."""
    pairs = ((file.staged, file.final) for file in staged.files)
    check.staged_in((staged.url, place), staged.folder, HIDDEN, pairs)


def by_place(orders: Iterable[TableOrder]) -> dict[str, TableOrder]:
    """Return one save mode for each place, the first that was given."""
    return {order.where: order for order in reversed(list(orders))}


def mark_of(life: str) -> str:
    """Return the user under whose number tables know that an incarnation has opened them."""
    return f"{life}.opened"


def mode_of(schema: SchemaSaveMode, data: DataSaveMode) -> Mode | None:
    """Return what the first commit does to the table; None if it only adds rows."""
    if schema is SchemaSaveMode.RECREATE_SCHEMA:
        return "anew"
    if data is DataSaveMode.DROP_DATA:
        return "clear"
    return "empty" if data is DataSaveMode.ERROR_WHEN_DATA_EXISTS else None
