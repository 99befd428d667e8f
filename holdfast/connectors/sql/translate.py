"""Walk an expression of a query and write it in Spark SQL.

Every kind of node has its own rule here; one without a rule is refused, so nothing reaches Spark
by accident.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from holdfast.connect.options import nearest
from holdfast.connectors.sql.casts import cast, read_type
from holdfast.connectors.sql.dialect import column_parts, place_of, text_of_node
from holdfast.connectors.sql.functions_other import FUNCTIONS, REFUSED, alike
from holdfast.connectors.sql.functions_text import concat
from holdfast.connectors.sql.functions_time import extract
from holdfast.connectors.sql.operators import among, arithmetic, comparison, like
from holdfast.connectors.sql.values import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    NULL,
    FunctionCall,
    Scope,
    SqlValue,
    literal,
    text,
    type_of,
)
from holdfast.errors import UserError
from holdfast.model.types import UNKNOWN, Type

ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
COMPARISONS = {
    exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
}  # fmt: skip
LIKES = {exp.Like: "LIKE", exp.ILike: "ILIKE", exp.RegexpLike: "RLIKE"}
CONDITIONS = (
    *COMPARISONS, *LIKES, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Exists,
)  # fmt: skip
READ = frozenset(
    (
        "this", "expression", "expressions", "table", "db", "catalog", "is_string", "negate",
        "low", "high", "ifs", "default", "true", "false", "to", "position", "query", "field",
        "unit", "typed", "safe",
    )
)  # fmt: skip
"""The parts of a node that the rules below look at.  A node with another part is refused."""

NOW = {
    exp.CurrentDate: "CURRENT_DATE",
    exp.CurrentTime: "CURRENT_TIME",
    exp.CurrentTimestamp: "CURRENT_TIMESTAMP",
    exp.CurrentDatetime: "CURRENT_TIMESTAMP",
}

Resolve = Callable[[list[str]], SqlValue]
"""Finds a column by its dotted name, or raises UserError."""

Rule = Callable[["Translator", Any], SqlValue]


@dataclass
class Translator:
    """Translates the expressions of one SELECT.

    `resolve` finds its columns, `outer` their types.  `subquery` and `window` write what only a
    query over several tables may hold; where absent, such parts are refused.
    """

    query: str
    resolve: Resolve
    outer: Scope
    subquery: Callable[[exp.Query], str] | None = None
    window: Callable[[exp.Window, str], str] | None = None
    mistakes: list[str] | None = None
    """Where a check collects every mistake; without it the first one is raised."""
    _asked: dict[str, Type | None] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        """What its expressions are written for."""
        return replace(self.outer, ask=self._type_of)

    def value(self, node: exp.Expr) -> SqlValue:
        """Return an expression in Spark SQL."""
        if self.mistakes is None:
            return self._value(node)
        known = len(self.mistakes)
        try:
            return self._value(node)
        except UserError as error:
            # What holds something that is wrong may be wrong for that alone.
            if len(self.mistakes) == known:
                self.mistakes.append(str(error))
            return SqlValue("NULL", UNKNOWN)

    def _value(self, node: exp.Expr) -> SqlValue:
        rule = RULES.get(type(node))
        held = {key for key, part in node.args.items() if part}
        if rule is None or not (isinstance(node, (exp.Select, exp.Window)) or held <= READ):
            raise UserError(f"'{text_of_node(node)}' is not supported in a query.")
        return rule(self, node)

    def sql(self, node: exp.Expr) -> str:
        """Return the text of an expression in Spark SQL."""
        return self.value(node).sql

    def _type_of(self, sql: str) -> Type | None:
        """Ask for a type, each text once."""
        if sql not in self._asked:
            self._asked[sql] = self.outer(sql)
        return self._asked[sql]

    def call(self, node: exp.Expr, name: str, args: tuple[SqlValue, ...]) -> SqlValue:
        """Return a function call in Spark SQL."""
        function = FUNCTIONS.get(name.upper())
        if function is None:
            raise UserError(unknown_function(name, place_of(node, self.query)))
        least, most = function.least, function.most
        if len(args) < least or (most is not None and len(args) > most):
            wanted = f"{least}" if least == most else f"{least} to {most or 'any number of'}"
            noun = "argument" if wanted == "1" else "arguments"
            raise UserError(
                f"{name}{place_of(node, self.query)} takes {wanted} {noun}, not {len(args)}."
            )
        made = function.build(FunctionCall(name, args, self.scope))
        return made if isinstance(made, SqlValue) else SqlValue(made)


def unknown_function(name: str, place: str) -> str:
    """Return the sentence for a function that is not known, or one that is known and refused."""
    reason = REFUSED.get(name.upper())
    if reason:
        return f"function {name}{place} is not supported. {reason}"
    # All of them would bury the other mistakes; the documentation has the list.
    hint = nearest(name, sorted(FUNCTIONS)) or " `holdfast connectors Sql` lists those there are."
    return f"there is no function '{name}'{place}.{hint}"


def _literal(_: Translator, node: exp.Literal) -> SqlValue:
    if node.is_string:
        return text(node.name)
    written = node.name
    if written.isdigit():
        number = int(written)
        kind = INT if number < 2**31 else BIGINT if number < 2**63 else None
        return SqlValue(written, kind, number, True)
    return SqlValue(f"{written}D", DOUBLE, float(written), True)


def _negative(t: Translator, node: exp.Neg) -> SqlValue:
    inner = t.value(node.this)
    number = inner.literal
    if isinstance(number, (int, float)) and not isinstance(number, bool):
        return SqlValue(f"(-{inner.sql})", inner.type, -number, True)
    return SqlValue(f"(- {inner.sql})", inner.type)


def _boolean(_: Translator, node: exp.Boolean) -> SqlValue:
    return SqlValue("true" if node.this else "false", BOOLEAN, bool(node.this), True)


def _column(t: Translator, node: exp.Expr) -> SqlValue:
    if isinstance(node, exp.Dot) and not isinstance(node.this, (exp.Column, exp.Dot)):
        return SqlValue(f"{t.sql(node.this)}[{literal(node.expression.name)}]")
    return t.resolve(column_parts(node))


def _bracket(t: Translator, node: exp.Bracket) -> SqlValue:
    inner, key = t.value(node.this), t.value(node.expressions[0])
    kind = type_of(inner, t.scope)
    gives = kind.parts[-1] if kind.kind in ("array", "map") else None
    return SqlValue(f"{inner.sql}[{key.sql}]", gives)


def _paren(t: Translator, node: exp.Paren) -> SqlValue:
    return t.value(node.this)


def _arithmetic(t: Translator, node: exp.Binary) -> SqlValue:
    sign = ARITHMETIC[type(node)]
    return arithmetic(sign, t.value(node.this), t.value(node.expression), t.scope)


def _whole_division(t: Translator, node: exp.IntDiv) -> SqlValue:
    return SqlValue(f"({t.sql(node.this)} div {t.sql(node.expression)})", BIGINT)


def _comparison(t: Translator, node: exp.Binary) -> SqlValue:
    sign = COMPARISONS[type(node)]
    return comparison(sign, t.value(node.this), t.value(node.expression), t.scope)


def _both(t: Translator, node: exp.Connector) -> SqlValue:
    word = "AND" if isinstance(node, exp.And) else "OR"
    return SqlValue(f"({t.sql(node.this)} {word} {t.sql(node.expression)})", BOOLEAN)


def _not(t: Translator, node: exp.Not) -> SqlValue:
    return SqlValue(f"(NOT {t.sql(node.this)})", BOOLEAN)


def _is(t: Translator, node: exp.Is) -> SqlValue:
    negated = bool(node.args.get("negate"))
    what = node.expression
    if isinstance(what, exp.Not):
        negated, what = True, what.this
    if not isinstance(what, (exp.Null, exp.Boolean)):
        raise UserError(f"'{text_of_node(node)}' is not supported. Say IS NULL or IS NOT NULL.")
    word = f"IS {'NOT ' if negated else ''}{text_of_node(what)}"
    return SqlValue(f"({t.sql(node.this)} {word})", BOOLEAN)


def _in(t: Translator, node: exp.In) -> SqlValue:
    inner = t.value(node.this)
    if node.args.get("query"):
        return SqlValue(f"({inner.sql} IN {t.sql(node.args['query'])})", BOOLEAN)
    return among(inner, [t.value(v) for v in node.expressions], t.scope)


def _like(t: Translator, node: exp.Binary, escape: str = "") -> SqlValue:
    sign = f"{'NOT ' if node.args.get('negate') else ''}{LIKES[type(node)]}"
    return like(sign, t.value(node.this), t.value(node.expression), escape)


def _escape(t: Translator, node: exp.Escape) -> SqlValue:
    return _like(t, node.this, f" ESCAPE {t.sql(node.expression)}")


def _between(t: Translator, node: exp.Between) -> SqlValue:
    inner, low, high = (t.value(node.args[k]) for k in ("this", "low", "high"))
    left = comparison(">=", inner, low, t.scope).sql
    return SqlValue(f"({left} AND {comparison('<=', inner, high, t.scope).sql})", BOOLEAN)


def _case(t: Translator, node: exp.Case) -> SqlValue:
    """Write a CASE; a WHEN that is a condition holds by itself even where CASE names a value."""
    subject = t.value(node.this) if node.this else None
    branches = node.args["ifs"]
    default = node.args.get("default")
    results = [t.value(b.args["true"]) for b in branches]
    results.append(t.value(default) if default else NULL)
    sqls, gives = alike(FunctionCall("CASE", tuple(results), t.scope))
    whens = []
    for branch, sql in zip(branches, sqls, strict=False):
        test = t.value(branch.this)
        if subject is not None and not isinstance(branch.this.unnest(), CONDITIONS):
            test = comparison("=", subject, test, t.scope)
        whens.append(f"WHEN {test.sql} THEN {sql}")
    return SqlValue(f"CASE {' '.join(whens)} ELSE {sqls[-1]} END", gives)


def _if(t: Translator, node: exp.If) -> SqlValue:
    default = node.args.get("false")
    results = (t.value(node.args["true"]), t.value(default) if default else NULL)
    sqls, gives = alike(FunctionCall("IF", results, t.scope))
    return SqlValue(f"if({t.sql(node.this)}, {sqls[0]}, {sqls[1]})", gives)


def _cast(t: Translator, node: exp.Cast) -> SqlValue:
    lenient = isinstance(node, exp.TryCast)
    return cast(t.value(node.this), read_type(node.to), t.scope, lenient, text_of_node(node))


def _concat(t: Translator, node: exp.DPipe) -> SqlValue:
    parts = tuple(t.value(part) for part in node.flatten(unnest=False))
    return concat(FunctionCall("||", parts, t.scope))


def _call(t: Translator, node: exp.Anonymous) -> SqlValue:
    arguments = node.expressions
    if node.name.upper() == "POSITION" and len(arguments) == 1:
        inside = arguments[0]
        if isinstance(inside, exp.In) and inside.args.get("field"):
            arguments = [inside.this, inside.args["field"]]
    return t.call(node, node.name, tuple(_argument(t, a) for a in arguments))


def _argument(t: Translator, node: exp.Expr) -> SqlValue:
    """Return an argument; an aggregate's may also be a star or DISTINCT."""
    if isinstance(node, exp.Star):
        return SqlValue("*")
    if isinstance(node, exp.Distinct):
        return SqlValue(f"DISTINCT {', '.join(t.sql(e) for e in node.expressions)}")
    return t.value(node)


def _extract(t: Translator, node: exp.Extract) -> SqlValue:
    inner = t.value(node.expression)
    return extract(node.this.name, inner, t.scope)


def _trim(t: Translator, node: exp.Trim) -> SqlValue:
    side = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(node.text("position").upper(), "TRIM")
    parts = [t.value(node.this)]
    if node.expression:
        parts.append(t.value(node.expression))
    return t.call(node, side, tuple(parts))


def _now(t: Translator, node: exp.Func) -> SqlValue:
    return t.call(node, NOW[type(node)], ())


def _interval(t: Translator, node: exp.Interval) -> SqlValue:
    return SqlValue(f"INTERVAL {t.sql(node.this)} {node.text('unit')}")


def _subquery(t: Translator, node: exp.Expr) -> SqlValue:
    if t.subquery is None:
        raise UserError(f"'{text_of_node(node)}': a query inside this one is not supported here.")
    query = node.this if isinstance(node, (exp.Subquery, exp.Exists)) else node
    assert isinstance(query, exp.Query)
    word = "EXISTS " if isinstance(node, exp.Exists) else ""
    return SqlValue(f"{word}({t.subquery(query)})", BOOLEAN if word else None)


def _filter(t: Translator, node: exp.Filter) -> SqlValue:
    return SqlValue(f"{t.sql(node.this)} FILTER (WHERE {t.sql(node.expression.this)})")


def _ignore_nulls(t: Translator, node: exp.IgnoreNulls) -> SqlValue:
    return SqlValue(f"{t.sql(node.this)} IGNORE NULLS")


def _window(t: Translator, node: exp.Window) -> SqlValue:
    if t.window is None:
        raise UserError(f"'{text_of_node(node)}': OVER is not supported here.")
    return SqlValue(t.window(node, t.sql(node.this)))


RULES: dict[type, Rule] = {
    exp.Literal: _literal,
    exp.Null: lambda _t, _n: NULL,
    exp.Boolean: _boolean,
    exp.Neg: _negative,
    exp.Column: _column,
    exp.Dot: _column,
    exp.Bracket: _bracket,
    exp.Paren: _paren,
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    exp.IntDiv: _whole_division,
    **dict.fromkeys(COMPARISONS, _comparison),
    exp.And: _both,
    exp.Or: _both,
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    **dict.fromkeys(LIKES, _like),
    exp.Escape: _escape,
    exp.Between: _between,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.DPipe: _concat,
    exp.Anonymous: _call,
    exp.Extract: _extract,
    exp.Trim: _trim,
    **dict.fromkeys(NOW, _now),
    exp.Interval: _interval,
    exp.Subquery: _subquery,
    exp.Select: _subquery,
    exp.Exists: _subquery,
    exp.Filter: _filter,
    exp.IgnoreNulls: _ignore_nulls,
    exp.Window: _window,
}
