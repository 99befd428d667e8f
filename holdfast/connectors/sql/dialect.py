"""Read a query into a syntax tree.

Names may stand in backticks or double quotes, text in single quotes, and a backslash in a text is
just a backslash.  No function is known to the parser: all of them arrive as plain calls, so that
none is rewritten by another dialect's rules before our tables have seen it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar

from sqlglot import Dialect, TokenType, exp
from sqlglot import Parser as BaseParser
from sqlglot import Tokenizer as BaseTokenizer
from sqlglot.errors import ParseError, TokenError

from holdfast.errors import UserError

KEPT_PARSERS = ("CAST", "TRY_CAST", "EXTRACT", "TRIM")


class Zeta(Dialect):
    """The dialect of SeaTunnel's own SQL engine, with Spark's rules where it says nothing."""

    NULL_ORDERING = "nulls_are_small"

    class Tokenizer(BaseTokenizer):
        IDENTIFIERS = ['"', "`"]
        KEYWORDS = {
            **BaseTokenizer.KEYWORDS,
            "LONG": TokenType.BIGINT,
            "BYTE": TokenType.TINYINT,
            "BYTES": TokenType.VARBINARY,
        }

    class Parser(BaseParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS = {k: BaseParser.FUNCTION_PARSERS[k] for k in KEPT_PARSERS}


@lru_cache(maxsize=64)
def parse(query: str) -> exp.Query:
    """Return the tree of a query, which callers must not change.  Raises UserError if none."""
    try:
        trees = [tree for tree in Zeta().parse(query) if tree is not None]
    except ParseError as error:
        found = error.errors[0]
        at = f"line {found['line']}, column {found['col']} of the query"
        near = f" near '{found['highlight']}'" if found["highlight"] else ""
        raise UserError(f"the query cannot be read at {at}{near}. {_reason(found)}") from error
    except TokenError as error:
        raise UserError(
            f"the query cannot be read: {error}. Is a quote or a comment left open?"
        ) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise UserError("the query is not one SELECT. Give exactly one SELECT statement.")
    for select in trees[0].find_all(exp.Select):
        if select.args.get("from_") is None:
            raise UserError("the query has a SELECT without FROM. Name its input, or dual.")
    return trees[0]


def text_of_node(node: exp.Expr) -> str:
    """Return a part of a query as it was written, apart from spacing."""
    return node.sql(dialect=Zeta, normalize_functions=False)


def place_of(node: exp.Expr, query: str) -> str:
    """Return where a part is in the query, as errors say it; empty where unknown."""
    start = node.meta.get("start")
    if start is None:
        return ""
    before = query[:start]
    column = start - (before.rfind("\n") + 1) + 1
    return f" at line {before.count(chr(10)) + 1}, column {column} of the query"


def table_names(query: exp.Query) -> Iterator[str]:
    """Yield each table a query reads from, by the name written, once; not its own WITH names."""
    own = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    seen: set[str] = set()
    for table in query.find_all(exp.Table):
        name = dotted(table)
        if name.lower() not in own | seen:
            seen.add(name.lower())
            yield name


def dotted(table: exp.Table) -> str:
    """Return a table's name with its qualifiers, without quotes."""
    return ".".join(part.name for part in table.parts)


def column_parts(node: exp.Expr) -> list[str]:
    """Return the names of a dotted column reference, outermost first."""
    if isinstance(node, exp.Dot):
        return [*column_parts(node.this), node.expression.name]
    if isinstance(node, exp.Column):
        return [part.name for part in node.parts]
    return [node.name]


def _reason(found: dict[str, object]) -> str:
    """Return the parser's own words, but not those that show its insides."""
    said = str(found["description"])
    return "Something is missing there." if "SENTINEL" in said else f"{said}."
