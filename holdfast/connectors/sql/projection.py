"""A query over one table, row by row: SELECT items FROM it, WHERE, LATERAL VIEW EXPLODE.

This is all that SeaTunnel's engine knows.  Each row goes its own way, so a changelog keeps its
hidden columns.  A lateral view works on what SELECT yields: it replaces the column of its name, or
adds one at the end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from holdfast.connectors.sql.columns import Columns, any_column
from holdfast.connectors.sql.dialect import column_parts, text_of_node
from holdfast.connectors.sql.functions_spark import AGGREGATES, WINDOWS
from holdfast.connectors.sql.translate import Resolve, Translator
from holdfast.connectors.sql.values import Scope
from holdfast.errors import UserError
from holdfast.model.types import quote

ALONE = ("expressions", "from_", "where", "laterals")
"""The parts of a SELECT that keep it a projection."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column that SELECT yields, in Spark SQL.  `shown` False: only a lateral view needs it."""

    name: str
    sql: str
    shown: bool = True

    @property
    def aliased(self) -> str:
        """The column with its name."""
        return f"{self.sql} AS {quote(self.name)}"


def is_projection(query: exp.Query) -> bool:
    """Say whether a query is one SELECT that looks at each row of one table by itself."""
    if not isinstance(query, exp.Select):
        return False
    if any(value for key, value in query.args.items() if key not in ALONE):
        return False
    source = query.args["from_"].this
    inner = list(query.find_all(exp.Query, exp.Window))
    return isinstance(source, exp.Table) and inner == [query] and not _gathers(query)


def _gathers(query: exp.Query) -> bool:
    names = {call.name.upper() for call in query.find_all(exp.Anonymous)}
    return bool(names & (AGGREGATES | WINDOWS))


class Projection:
    """A projection read against the columns of a table."""

    def __init__(
        self, text: str, query: exp.Select, columns: Columns | None, scope: Scope,
        mistakes: list[str] | None = None,
    ) -> None:  # fmt: skip
        self.text = text
        self.query = query
        self.columns = columns
        self.laterals: list[exp.Lateral] = query.args.get("laterals") or []
        resolve = columns.resolve if columns else any_column
        self.translator = Translator(text, resolve, scope, mistakes=mistakes)

    @property
    def where(self) -> str | None:
        """The condition that rows must meet, if any."""
        found = self.query.args.get("where")
        return self.translator.sql(found.this) if found else None

    def items(self) -> list[OutputColumn]:
        """Return what SELECT yields, and what lateral views need in addition."""
        items = [item for node in self.query.expressions for item in self._item(node)]
        names = [item.name for item in items]
        check_names(names)
        return [*items, *(OutputColumn(n, quote(n), shown=False) for n in self._needed(names))]

    def _item(self, node: exp.Expr) -> Iterator[OutputColumn]:
        if is_star(node):
            for name in self.columns.types if self.columns else ():
                yield OutputColumn(name, quote(name))
            return
        inner = node.this if isinstance(node, exp.Alias) else node
        name = output_name(node)
        if name in self._views and not self._has(column_parts(inner)[-1]):
            # The view of this name fills it in later.
            yield OutputColumn(name, "cast(NULL AS string)")
            return
        yield OutputColumn(name, self.translator.sql(inner))

    @property
    def _views(self) -> list[str]:
        return [view_name(lateral) for lateral in self.laterals]

    def _has(self, name: str) -> bool:
        return self.columns is None or name in self.columns.types

    def _needed(self, names: Sequence[str]) -> list[str]:
        """Return the table's columns that lateral views use and SELECT does not yield."""
        if self.columns is None:
            return []
        used = (c.parts[0].name for v in self.laterals for c in v.find_all(exp.Column))
        return [n for n in dict.fromkeys(used) if n not in names and n in self.columns.types]

    def view(self, lateral: exp.Lateral, resolve: Resolve, scope: Scope) -> tuple[str, str]:
        """Return a lateral view's name and the Spark SQL that yields its rows."""
        call = lateral.this
        if not isinstance(call, exp.Anonymous) or call.name.upper() != "EXPLODE":
            raise UserError(f"'{text_of_node(call)}': LATERAL VIEW takes EXPLODE(array) only.")
        if len(call.expressions) != 1:
            raise UserError(f"EXPLODE takes 1 argument, not {len(call.expressions)}.")
        translator = Translator(self.text, resolve, scope)
        value = translator.value(call.expressions[0])
        kind = value.type or translator.scope(value.sql)
        if kind is not None and kind.kind not in ("array", ""):
            raise UserError(f"EXPLODE needs an array, but {text_of_node(call)} has {kind}.")
        outer = "_outer" if lateral.args.get("outer") else ""
        return view_name(lateral), f"explode{outer}({value.sql})"


def is_star(node: exp.Expr) -> bool:
    """Say whether an item is `*` or `t.*`, and refuse a star with EXCEPT and its like."""
    if not (isinstance(node, exp.Star) or (isinstance(node, exp.Column) and node.is_star)):
        return False
    star = node if isinstance(node, exp.Star) else node.this
    if any(star.args.values()):
        raise UserError(f"'{text_of_node(node)}' is not supported. List the columns instead.")
    return True


def view_name(lateral: exp.Lateral) -> str:
    """Return the column a lateral view makes."""
    alias = lateral.args.get("alias")
    columns = alias.columns if alias else []
    if len(columns) == 1:
        return str(columns[0].name)
    if alias and not columns and alias.name:
        return str(alias.name)
    raise UserError("LATERAL VIEW EXPLODE(..) needs one column name after AS.")


def output_name(node: exp.Expr) -> str:
    """Return the name of an item: its alias, its column, or its own text."""
    if isinstance(node, exp.Alias):
        return node.alias
    if isinstance(node, (exp.Column, exp.Dot)):
        return column_parts(node)[-1]
    return text_of_node(node)


def check_names(names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise UserError(
            f"the query yields column '{twice[0]}' more than once. Give each its own name with AS."
        )
