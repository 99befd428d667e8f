"""What a query returns for its input, as far as that is known without Spark.

Names are all known then, and so are the types of columns that are taken as they are.  The type of
an expression is Spark's to tell.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from holdfast.connect.options import nearest
from holdfast.connectors.sql.columns import Columns
from holdfast.connectors.sql.dialect import column_parts, dotted, place_of
from holdfast.connectors.sql.projection import (
    Projection,
    check_names,
    is_star,
    output_name,
)
from holdfast.connectors.sql.values import Scope
from holdfast.errors import UserError, UserErrors
from holdfast.model.table import Column, Table
from holdfast.model.types import UNKNOWN


def projected(text: str, query: exp.Select, table: Table, scope: Scope) -> Table:
    """Return the columns that a query over one table yields.  Raises UserError as planning does."""
    known = Columns({c.name: c.type for c in table.columns})
    wrong: list[str] = []
    projection = Projection(text, query, known, scope, wrong)
    items = {item.name: item for item in projection.items()}
    _ = projection.where
    if wrong:
        raise UserErrors(wrong)
    made = {name: UNKNOWN for name, item in items.items() if item.shown}
    for node in query.expressions:
        inner = node.this if isinstance(node, exp.Alias) else node
        if is_star(node):
            made |= known.types
        elif isinstance(inner, exp.Column) and output_name(node) in made:
            found = known.types.get(column_parts(inner)[-1])
            made[output_name(node)] = found or UNKNOWN
    for lateral in projection.laterals:
        # A view sees what SELECT yields, and what it needs in addition.
        hidden = {name: known.types[name] for name, item in items.items() if not item.shown}
        seen = Columns(hidden | made)
        name, _sql = projection.view(lateral, seen.resolve, scope)
        made[name] = UNKNOWN
    return _with(table, made)


def related(query: exp.Query, named: Mapping[str, Table]) -> Table | None:
    """Return the columns that a query over whole tables yields.  `named`: by the name in FROM.

    None where a star over several tables hides them.
    """
    for name, table in named.items():
        if table.changelog:
            raise changelog(name)
    _check_columns(query, named.values())
    first = next(iter(named.values()))
    try:
        names = list(_outputs(query, named))
    except LookupError:
        return None
    check_names(names)
    return _with(without_keys(first), dict.fromkeys(names, UNKNOWN))


def without_keys(table: Table) -> Table:
    """Return a table whose rows are not those of the input, so that none of its keys holds."""
    return replace(table, primary_key=None, constraints=(), partitions=())


def changelog(name: str) -> UserError:
    """Return what to say of a query over whole tables that is to read updates and deletes."""
    return UserError(
        f"'{name}' carries updates and deletes, and a query that joins, groups,"
        " sorts or limits cannot follow them. Use SELECT .. FROM .. WHERE alone, or"
        " a source that only inserts."
    )


def _with(table: Table, types: Mapping[str, object]) -> Table:
    made = [Column(name, kind) for name, kind in types.items()]  # type: ignore[arg-type]
    return table.with_columns(tuple(made))


def _check_columns(query: exp.Query, tables: Iterable[Table]) -> None:
    """Raise for a name that is no column of any table, and that the query itself gives to nothing.

    Which of them a part of the query may use is Spark's to say.
    """
    columns = list(dict.fromkeys(name for table in tables for name in table.names))
    given = {output_name(e).lower() for s in query.find_all(exp.Select) for e in s.expressions
             if isinstance(e, exp.Alias)}  # fmt: skip
    given |= {i.name.lower() for a in query.find_all(exp.TableAlias) for i in a.columns}
    sources = {part.lower() for t in query.find_all(exp.Table) for part in dotted(t).split(".")}
    sources |= {t.alias_or_name.lower() for t in query.find_all(exp.Table, exp.Subquery)}
    sources |= {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    sources |= {v.args["alias"].name.lower() for v in query.find_all(exp.Lateral)
                if v.args.get("alias")}  # fmt: skip
    known = {name.lower() for name in columns} | given
    wrong = []
    for column in query.find_all(exp.Column):
        parts = column_parts(column)
        while len(parts) > 1 and parts[0].lower() in sources and parts[0].lower() not in known:
            parts = parts[1:]
        if column.is_star or not parts[0] or parts[0].lower() in known | _windows(query):
            continue
        place = place_of(column, "")
        wrong.append(
            f"there is no column '{parts[0]}'{place}.{nearest(parts[0], columns)}"
            f" Columns: {', '.join(columns)}."
        )
    if wrong:
        raise UserErrors(wrong)


def _windows(query: exp.Query) -> set[str]:
    return {w.name.lower() for w in query.find_all(exp.Window) if w.name}


def _outputs(query: exp.Query, named: Mapping[str, Table]) -> Iterator[str]:
    """Yield the names of what a query yields; raises LookupError where a star hides them."""
    inner: exp.Expr = query
    while isinstance(inner, (exp.SetOperation, exp.Subquery)):
        inner = inner.this
    assert isinstance(inner, exp.Select)
    tables: Sequence[Table] = tuple(named.values())
    for node in inner.expressions:
        if not is_star(node):
            yield output_name(node)
            continue
        source = inner.args["from_"].this
        plain = isinstance(source, exp.Table) and not inner.args.get("joins")
        if not plain or len(tables) != 1 or inner.args.get("laterals"):
            raise LookupError(output_name(node))
        yield from tables[0].names
