"""Find columns of one table by dotted names, into rows and maps."""

from collections.abc import Mapping

from holdfast.connect.options import nearest
from holdfast.connectors.sql.values import SqlValue, literal
from holdfast.errors import UserError
from holdfast.model.types import UNKNOWN, Type, quote

NESTED = ("row", "map")


class Columns:
    """The columns a SELECT may name.  Upper and lower case matter, as in SeaTunnel."""

    def __init__(self, types: Mapping[str, Type]) -> None:
        self.types = types

    def resolve(self, parts: list[str]) -> SqlValue:
        """Return the column, or the field within one; leading names of tables are skipped."""
        for skipped, name in enumerate(parts):
            found = self.types.get(name)
            rest = parts[skipped + 1 :]
            if found is not None and (not rest or found.kind in NESTED or found == UNKNOWN):
                return _within(SqlValue(quote(name), found), rest, ".".join(parts))
        raise UserError(self.missing(parts[-1]))

    def missing(self, name: str) -> str:
        """Return the sentence for a column that is not there."""
        names = list(self.types)
        return f"there is no column '{name}'.{nearest(name, names)} Columns: {', '.join(names)}."


def any_column(parts: list[str]) -> SqlValue:
    """Take any name for a column of unknown type: Spark will look for it, if anything does."""
    return SqlValue(".".join(quote(p) for p in parts))


def _within(value: SqlValue, parts: list[str], whole: str) -> SqlValue:
    """Go down into a row by field, into a map by key; a key that is missing gives NULL."""
    for part in parts:
        kind = value.type
        assert kind is not None  # every column's type is known
        if kind == UNKNOWN:
            value = SqlValue(f"{value.sql}.{quote(part)}", UNKNOWN)
        elif kind.kind == "map":
            value = SqlValue(f"{value.sql}[{literal(part)}]", kind.parts[1])
        elif kind.kind == "row" and part in kind.names:
            value = SqlValue(f"{value.sql}.{quote(part)}", dict(kind.fields)[part])
        elif kind.kind == "row":
            fields = ", ".join(kind.names)
            raise UserError(f"there is no field '{part}' in '{whole}'. Fields: {fields}.")
        else:
            raise UserError(f"'{part}' in '{whole}' is not in a row or a map, but in {kind}.")
    return value
