"""The Sql transform.

A query over one table that looks at each row by itself runs as a projection and keeps row kinds;
any other runs over whole tables, which a changelog cannot.  Either way Spark sees one plan.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar
from uuid import uuid4
from zoneinfo import available_timezones

from sqlglot import exp

from holdfast.connect.options import options
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.transform import Transform
from holdfast.connectors.sql.columns import Columns, any_column
from holdfast.connectors.sql.dialect import parse, place_of, table_names
from holdfast.connectors.sql.foresee import changelog, projected, related, without_keys
from holdfast.connectors.sql.functions_other import FUNCTIONS
from holdfast.connectors.sql.jvm_functions import make_known
from holdfast.connectors.sql.projection import OutputColumn, Projection, check_names, is_projection
from holdfast.connectors.sql.relational import Relational
from holdfast.connectors.sql.translate import unknown_function
from holdfast.connectors.sql.values import Scope, TypeOf, Weeks
from holdfast.errors import UserError, UserErrors
from holdfast.model.table import Table
from holdfast.model.types import Type, from_spark, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


T = TypeVar("T")

_OFFSET = re.compile(r"[+-]\d\d:\d\d")

NOBODY = Scope(lambda _: None)
"""A scope in which no type is known."""


@options
class SqlOptions:
    #: The SELECT to run.  Its FROM names the input, or `dual`; with several inputs it may join
    #: them by their `plugin_input` names.
    query: str
    #: Which SQL engine SeaTunnel would use; there is only this one, and it changes nothing.
    engine: Literal["ZETA", "INTERNAL"] = "ZETA"
    #: The zone in which fields, dates and texts of a timestamp_tz are read, such as Asia/Shanghai
    #: or +08:00; without it that of the job (UTC, unless env has spark.sql.session.timeZone).
    #: SeaTunnel takes the offset each value came with, which Spark does not keep.
    time_zone: str | None = None
    #: How WEEK and EXTRACT(DAYOFWEEK) count: as SeaTunnel 2.3.9 does (WEEK one more than Java's,
    #: DAYOFWEEK 7 on Sunday), or as newer ones do (Java's own week, DAYOFWEEK 0 on Sunday).
    weeks: Weeks = "2.3.9"

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the query as far as is known without its input."""
        if self.time_zone is not None and not _zone_is_known(self.time_zone):
            yield (
                "time_zone",
                f"'{self.time_zone}' is no time zone. Give one such as Asia/Shanghai or +08:00.",
            )
        try:
            tree = parse(self.query)
            wrong = list(_unknown(tree, self.query))
            _dry_run(tree, self.query, wrong)
        except UserError as error:
            wrong = [str(error)]
        for message in dict.fromkeys(wrong):
            yield "query", f"query: {message}"


class Sql(Transform[SqlOptions]):
    """Runs a SELECT in SeaTunnel's dialect, and in more of Spark's.

    A query over one table that looks at each row by itself keeps row kinds and may stream.  Joins,
    aggregates, sub-queries, windows and sorting work in BATCH jobs.
    """

    name = "Sql"
    notes = (
        f"Functions: {', '.join(sorted(FUNCTIONS))}.\n\nWhat each of SeaTunnel's functions gives,"
        " and where that is not what SeaTunnel gives: [Functions of Sql](../sql-functions.md)."
    )

    @classmethod
    def joins(cls, options: SqlOptions, inputs: tuple[str, ...]) -> bool:
        """Say whether the query reads more than one of its inputs."""
        read = {name.lower() for name in table_names(parse(options.query))}
        return len(read & {name.lower() for name in inputs}) > 1

    @classmethod
    def whole(cls, options: SqlOptions) -> bool:
        """Say whether the query looks at more than one row at a time."""
        return not is_projection(parse(options.query))

    def apply(self, rows: Rows) -> Rows:
        """Run the query over one table, which any name in FROM means."""
        query = parse(self.options.query)
        if is_projection(query):
            assert isinstance(query, exp.Select)
            return rows.with_frame(_explained(lambda: self._project(query, rows)))
        named = dict.fromkeys(table_names(query), rows)
        frame = _explained(lambda: self._relate(query, named))
        table = rows.table if _keeps_rows(query) else without_keys(rows.table)
        return Rows.of(table, frame)

    def foresee(self, table: Table) -> Table | None:
        """Return the columns of the result; Spark need not be asked for names."""
        query = parse(self.options.query)
        if not is_projection(query):
            return self._related(query, dict.fromkeys(table_names(query), table))
        assert isinstance(query, exp.Select)
        scope = self._scope(lambda _: None)
        return _said(lambda: projected(self.options.query, query, table, scope))

    def foresee_join(self, inputs: Mapping[str, Sequence[Table]]) -> Table | None:
        """Return the columns of the result, by the first table that the query reads."""
        query = parse(self.options.query)
        named = {n: _said(partial(_find, n, inputs, _same)) for n in table_names(query)}
        return self._related(query, named)

    def _related(self, query: exp.Query, named: Mapping[str, Table]) -> Table | None:
        return _said(lambda: related(query, named)) if named else None

    def join(self, inputs: Mapping[str, Tables]) -> Tables:
        """Run the query over several inputs; the result goes by the first table it reads."""
        query = parse(self.options.query)
        named: dict[str, Rows] = {}

        def build() -> "DataFrame":
            named.update({n: _find(n, inputs, _table_of) for n in table_names(query)})
            return self._relate(query, named)

        frame = _explained(build)
        first = next(iter(named.values()))
        return Tables([Rows.of(without_keys(first.table), frame)])

    def _project(self, query: exp.Select, rows: Rows) -> "DataFrame":
        frame, hidden = rows.frame, rows.hidden
        columns = Columns({c.name: c.type for c in rows.table.columns})
        make_known(frame.sparkSession)
        projection = Projection(self.options.query, query, columns, self._scope(_asker(frame)))
        items = projection.items()
        where = projection.where
        if where:
            frame = frame.where(where)
        kept = [quote(name) for name in hidden]
        frame = frame.selectExpr(*(item.aliased for item in items), *kept)
        for lateral in projection.laterals:
            scope = self._scope(_asker(frame))
            frame, items = _explode(projection, lateral, frame, items, kept, scope)
        if all(item.shown for item in items):
            return frame
        return frame.drop(*(item.name for item in items if not item.shown))

    def _scope(self, ask: TypeOf) -> Scope:
        options = self.options
        return Scope(ask, self.context.stage, options.time_zone or "", options.weeks)

    def _relate(self, query: exp.Query, named: Mapping[str, Rows]) -> "DataFrame":
        for name, rows in named.items():
            if rows.table.changelog:
                raise changelog(name)
        spark = next(iter(named.values())).frame.sparkSession
        make_known(spark)
        with _views(named) as views:
            scope = self._scope(_prober(spark))
            text = Relational(self.options.query, views, scope).sql(query)
            frame = spark.sql(text)
        check_names(frame.columns)
        return frame


def _zone_is_known(name: str) -> bool:
    return bool(_OFFSET.fullmatch(name)) or name in available_timezones()


def _unknown(tree: exp.Query, query: str) -> Iterator[str]:
    for call in tree.find_all(exp.Anonymous):
        if call.name.upper() not in FUNCTIONS:
            yield unknown_function(call.name, place_of(call, query))


def _dry_run(tree: exp.Query, query: str, wrong: list[str]) -> None:
    """Translate with no types known: what is wrong whatever the types are shows up here."""
    try:
        if not is_projection(tree):
            names = dict.fromkeys(table_names(tree), "view")
            Relational(query, names, NOBODY, wrong).sql(tree)
            return
        assert isinstance(tree, exp.Select)
        projection = Projection(query, tree, None, NOBODY, wrong)
        projection.items()
        _ = projection.where
        for lateral in projection.laterals:
            projection.view(lateral, any_column, NOBODY)
    except UserError as error:  # of the query's shape: the rest cannot be checked
        if not wrong:
            wrong.append(str(error))


def _explode(
    projection: Projection,
    lateral: exp.Lateral,
    frame: "DataFrame",
    items: list[OutputColumn],
    kept: list[str],
    scope: Scope,
) -> tuple["DataFrame", list[OutputColumn]]:
    """Apply one lateral view: in place of the column of its name, or as a new last one."""
    types = {f.name: from_spark(f.dataType.jsonValue()) for f in frame.schema.fields}
    name, sql = projection.view(lateral, Columns(types).resolve, scope)
    items = [replace(item, shown=True) if item.name == name else item for item in items]
    if name not in [item.name for item in items]:
        items.append(OutputColumn(name, sql))
    columns = [f"{sql if i.name == name else quote(i.name)} AS {quote(i.name)}" for i in items]
    frame = frame.selectExpr(*columns, *kept)
    if not lateral.args.get("outer"):
        frame = frame.where(f"{quote(name)} IS NOT NULL")
    return frame, items


def _find(name: str, inputs: Mapping[str, Iterable[T]], table_of: Callable[[T], Table]) -> T:
    """Return the rows a name in FROM means: a dataset of one table, or a table of any dataset."""
    wanted = name.lower()
    for dataset, tables in inputs.items():
        found = list(tables)
        if dataset.lower() == wanted and len(found) == 1:
            return found[0]
    every = [rows for tables in inputs.values() for rows in tables]
    paths = [table_of(rows).path for rows in every]
    for rows, path in zip(every, paths, strict=True):
        if wanted in (str(path).lower(), path.table.lower()):
            return rows
    good = ", ".join([*inputs, *map(str, paths)])
    raise UserError(f"there is no table '{name}'. Inputs and their tables: {good}.")


def _table_of(rows: Rows) -> Table:
    return rows.table


def _same(table: Table) -> Table:
    return table


def _said(build: Callable[[], T]) -> T:
    """Say which transform a mistake is in."""
    try:
        return build()
    except UserError as error:
        raise UserErrors([f"Sql: {said}" for said in error.sentences]) from error


def _keeps_rows(query: exp.Query) -> bool:
    """Say whether each row of the result is one row of the table, so that its key still holds."""
    plain = isinstance(query, exp.Select) and not query.args.get("joins")
    return plain and is_projection(exp.Select(**_without_order(query)))


def _without_order(query: exp.Query) -> dict[str, object]:
    left_out = ("order", "limit", "offset")
    return {k: v for k, v in query.copy().args.items() if k not in left_out}


@contextmanager
def _views(named: Mapping[str, Rows]) -> Iterator[dict[str, str]]:
    """Give each table a name of its own in Spark while the query is planned."""
    views = {name: f"holdfast_sql_{uuid4().hex}" for name in named}
    spark = next(iter(named.values())).frame.sparkSession
    try:
        for name, rows in named.items():
            rows.visible.createTempView(views[name])
        yield views
    finally:
        for view in views.values():
            spark.catalog.dropTempView(view)


def _asker(frame: "DataFrame") -> TypeOf:
    """Return what knows the type of an expression over a frame."""
    from pyspark.errors import AnalysisException

    def ask(sql: str) -> Type | None:
        try:
            found = frame.selectExpr(sql).schema.fields[0]
        except AnalysisException:
            return None  # the query itself will say what is wrong, and better
        return from_spark(found.dataType.jsonValue())

    return ask


def _prober(spark: "SparkSession") -> TypeOf:
    """Return what knows the type of the one column of a query."""
    from pyspark.errors import AnalysisException

    def probe(sql: str) -> Type | None:
        try:
            found = spark.sql(sql).schema.fields[0]
        except AnalysisException:
            return None  # such as a column of an outer query
        return from_spark(found.dataType.jsonValue())

    return probe


def _explained(build: Callable[[], "DataFrame"]) -> "DataFrame":
    """Plan a query; what Spark refuses becomes a sentence for the user."""
    from pyspark.errors import AnalysisException

    try:
        return _said(build)
    except AnalysisException as error:
        said = str(error).splitlines()[0]
        raise UserError(f"Sql: the query does not fit its input: {said}") from error
