"""A query over whole tables: joins, GROUP BY, ORDER BY, sub-queries, WITH, OVER.

SeaTunnel refuses these.  The shape of the query is kept and written by sqlglot in Spark's dialect;
every expression within it goes through our own translation first, as text that sqlglot leaves
alone.
"""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from holdfast.connectors.sql.columns import any_column
from holdfast.connectors.sql.dialect import dotted, text_of_node
from holdfast.connectors.sql.projection import is_star, output_name
from holdfast.connectors.sql.translate import Translator
from holdfast.connectors.sql.values import Scope
from holdfast.errors import UserError
from holdfast.model.types import Type

SPARK = "spark"
HOLE = "holdfast_hole"
REFUSED = {"qualify": "QUALIFY", "into": "INTO", "pivots": "PIVOT", "match": "MATCH_RECOGNIZE"}


class Relational:
    """Rewrites one query.  `views` maps each table the query names to a Spark view.

    `scope` knows the type of the only column of a Spark query.  `mistakes`: as for a Translator.
    """

    def __init__(
        self, text: str, views: Mapping[str, str], scope: Scope, mistakes: list[str] | None = None
    ) -> None:
        self.mistakes = mistakes
        self.text = text
        self.views = {name.lower(): view for name, view in views.items()}
        self.scope = scope

    def sql(self, query: exp.Query) -> str:
        """Return the query in Spark SQL."""
        return self._query(query.copy(), []).sql(dialect=SPARK)

    def _query(self, query: exp.Query, known: list[exp.CTE]) -> exp.Query:
        """Rewrite a query in place.  `known` are the WITH parts it may use, already rewritten."""
        known = [*known, *self._ctes(query, known)]
        if isinstance(query, exp.SetOperation):
            self._query(query.left, known)
            self._query(query.right, known)
            self._tail(query, self._translator("", known))
        elif isinstance(query, exp.Subquery):
            _only(query, "this", "order", "limit", "offset", "with_")
            self._query(query.this, known)
            self._tail(query, self._translator("", known))
        else:
            assert isinstance(query, exp.Select)
            self._select(query, known)
        return query

    def _ctes(self, query: exp.Query, known: list[exp.CTE]) -> list[exp.CTE]:
        found = query.args.get("with_")
        if found is None:
            return []
        if found.args.get("recursive"):
            raise UserError("WITH RECURSIVE is not supported.")
        made: list[exp.CTE] = []
        for cte in found.expressions:
            self._query(cte.this, [*known, *made])
            made.append(cte)
        return made

    def _select(self, select: exp.Select, known: list[exp.CTE]) -> None:
        for key, word in REFUSED.items():
            if select.args.get(key):
                raise UserError(f"{word} is not supported in a query.")
        if select.args.get("distinct") and select.args["distinct"].args.get("on"):
            raise UserError("DISTINCT ON is not supported. Use row_number() OVER (..) instead.")
        joins = select.args.get("joins") or []
        for source in (select.args["from_"], *joins):
            self._source(source, known)
        translator = self._translator(self._scope(select, known), known)
        for number, lateral in enumerate(select.args.get("laterals") or []):
            self._lateral(lateral, number, translator)
            translator = self._translator(self._scope(select, known), known)
        for join in joins:
            if join.args.get("on"):
                join.set("on", _raw(translator.sql(join.args["on"])))
        select.set("expressions", [self._item(e, translator) for e in select.expressions])
        for key in ("where", "having"):
            if select.args.get(key):
                select.args[key].set("this", _raw(translator.sql(select.args[key].this)))
        for window in select.args.get("windows") or []:
            _rewrite(window, translator)
        if select.args.get("group"):
            _rewrite(select.args["group"], translator)
        self._tail(select, translator)

    def _tail(self, query: exp.Query, translator: Translator) -> None:
        for key in ("order", "sort", "limit", "offset"):
            if query.args.get(key):
                _rewrite(query.args[key], translator)

    def _source(self, holder: exp.Expr, known: list[exp.CTE]) -> None:
        """Point a FROM or JOIN at its view, or rewrite the query it holds."""
        source = holder.this
        _only(source, "this", "db", "catalog", "alias")
        if isinstance(source, exp.Subquery):
            self._query(source.this, known)
            return
        if not isinstance(source, exp.Table):
            raise UserError(f"'{text_of_node(source)}' is not supported in FROM.")
        name = dotted(source)
        if name.lower() in {cte.alias.lower() for cte in known}:
            return
        view = self.views.get(name.lower())
        if view is None:
            raise UserError(f"there is no table '{name}'. Tables: {', '.join(self.views)}.")
        if source.args.get("alias") and source.args["alias"].columns:
            raise UserError(f"'{text_of_node(source)}': a table's columns cannot be renamed here.")
        alias = source.alias or source.name
        holder.set("this", exp.alias_(exp.to_table(view), alias, table=True, quoted=True))

    def _scope(self, select: exp.Select, known: list[exp.CTE]) -> str:
        """Return a query with a hole, over the same tables, in which types can be asked for."""
        probe = exp.Select(expressions=[_raw(HOLE)], from_=select.args["from_"].copy())
        joins = [join.copy() for join in select.args.get("joins") or []]
        for join in joins:
            if join.args.get("on"):
                join.set("on", exp.true())
        probe.set("joins", joins)
        done = [v for v in select.args.get("laterals") or [] if isinstance(v.this, exp.Var)]
        probe.set("laterals", [lateral.copy() for lateral in done])
        if known:
            probe.set("with_", exp.With(expressions=[cte.copy() for cte in known]))
        return probe.sql(dialect=SPARK)

    def _translator(self, scope: str, known: list[exp.CTE]) -> Translator:
        def ask(sql: str) -> Type | None:
            return self.scope(scope.replace(HOLE, sql)) if scope else None

        def subquery(inner: exp.Query) -> str:
            return self._query(inner.copy(), known).sql(dialect=SPARK)

        asked = replace(self.scope, ask=ask)
        translator = Translator(self.text, any_column, asked, subquery, mistakes=self.mistakes)

        def window(node: exp.Window, function: str) -> str:
            made = node.copy()
            _rewrite(made, translator)
            made.set("this", _raw(function))
            return made.sql(dialect=SPARK)

        translator.window = window
        return translator

    def _item(self, node: exp.Expr, translator: Translator) -> exp.Expr:
        if is_star(node):
            return node
        inner = node.this if isinstance(node, exp.Alias) else node
        name = exp.to_identifier(output_name(node), quoted=True)
        return exp.Alias(this=_raw(translator.sql(inner)), alias=name)

    def _lateral(self, lateral: exp.Lateral, number: int, translator: Translator) -> None:
        if not lateral.args.get("view"):
            raise UserError("LATERAL is supported as LATERAL VIEW EXPLODE(..) only.")
        lateral.set("this", _raw(translator.sql(lateral.this)))
        alias = lateral.args.get("alias")
        if alias is not None and not alias.this:
            alias.set("this", exp.to_identifier(f"holdfast_view_{number}"))


def _rewrite(holder: exp.Expr, translator: Translator) -> None:
    """Translate each expression below GROUP BY, ORDER BY, LIMIT or OVER, whatever holds it."""
    for key, held in list(holder.args.items()):
        if isinstance(held, list):
            holder.set(key, [_rewritten(e, translator) for e in held])
        elif isinstance(held, exp.Expr) and (key, type(holder)) != ("this", exp.Window):
            holder.set(key, _rewritten(held, translator))


def _only(node: exp.Expr, *keys: str) -> None:
    """Refuse a node with parts that are not looked at here."""
    if any(part for key, part in node.args.items() if key not in keys):
        raise UserError(f"'{text_of_node(node)}' is not supported in FROM.")


HOLDERS = (
    exp.Ordered, exp.Order, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.WindowSpec,
    exp.Window,
)  # fmt: skip
KEPT = (exp.Identifier, exp.Var)


def _rewritten(node: object, translator: Translator) -> object:
    if isinstance(node, HOLDERS):
        _rewrite(node, translator)
        return node
    if isinstance(node, exp.Expr) and not isinstance(node, KEPT):
        return _raw(translator.sql(node))
    return node


def _raw(sql: str) -> exp.Var:
    """Return finished Spark SQL as a node that is written as it is."""
    return exp.Var(this=sql)
