"""Which field of a row is which column of the table."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from holdfast.errors import UserError
from holdfast.model.table import Column


@dataclass(frozen=True, slots=True)
class Layout:
    """How many fields a row has, and for each column of the table which one it is, if any."""

    width: int
    fields: tuple[int | None, ...]


def layout_of(
    columns: Sequence[Column], in_path: Collection[str], width: int | None = None,
    header: Sequence[str] | None = None, place: str = "",
) -> Layout:  # fmt: skip
    """Return how a file's rows are laid out.

    `in_path` are columns that the file's path has a value for, and that counts; rows may have a
    field for each of them, too, as `width` says, or none.  `header` is the file's first row.
    """
    if header is not None:
        found = _by_name(columns, header, place)
        pairs = zip(columns, found.fields, strict=True)
        return Layout(found.width, tuple(None if c.name in in_path else f for c, f in pairs))
    own = [n for n, column in enumerate(columns) if column.name not in in_path]
    if not in_path or width == len(columns):
        return Layout(len(columns), tuple(n if n in own else None for n in range(len(columns))))
    places = {n: place for place, n in enumerate(own)}
    return Layout(len(own), tuple(places.get(n) for n in range(len(columns))))


def _by_name(columns: Sequence[Column], header: Sequence[str], place: str) -> Layout:
    names = [name.strip().lower() for name in header]
    twice = [c.name for c in columns if names.count(c.name.lower()) > 1]
    known = {name: number for number, name in enumerate(names)}
    fields = tuple(known.get(c.name.lower()) for c in columns)
    if twice or all(field is None for field in fields):
        wrong = f"column {twice[0]} twice" if twice else "none of the columns in schema"
        raise UserError(
            f"LocalFile cannot read {place}: csv_use_header_line takes its first row for names of"
            f" columns, and it names {wrong}. It has: {', '.join(header)[:200]}."
        )
    return Layout(len(names), fields)
