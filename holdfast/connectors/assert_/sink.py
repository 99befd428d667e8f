"""Assert: fail the job unless its rows and tables are as the rules say.

Rules for values become one Spark aggregate for each slice of a table, so that no row leaves
Spark.  Rules for the number of rows hold for the whole job and are checked when it ends.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows, Tables
from holdfast.connect.sink import ANYBODY, Committable, Opening, Sink, Staging, WritePreview
from holdfast.connectors.assert_.checks import Check, field_checks, table_failures
from holdfast.connectors.assert_.options import AssertOptions, RowRule, TableRules
from holdfast.errors import UserError
from holdfast.model.job import Guarantee
from holdfast.model.table import Table
from holdfast.model.types import UNKNOWN, quote

SHOWN_MAX = 5
"""How many failures a message lists."""


class Assert(Sink[AssertOptions]):
    """Check rows and drop them."""

    name = "Assert"
    placeless = True
    example = "rules { row_rules = [{ rule_type = MIN_ROW, rule_value = 1 }] }"
    guarantee: ClassVar[Guarantee] = Guarantee.AT_LEAST_ONCE
    because = "rows are checked as they come"

    def __init__(self, options: AssertOptions, context: PluginContext) -> None:
        super().__init__(options, context)
        self._checked: set[str] = set()
        self._seen: set[str] = set()

    @classmethod
    def writing(cls, options: AssertOptions, table: Table) -> WritePreview:
        """Say that nothing stays."""
        return WritePreview(how="rows are checked and dropped")

    def refuse(self, table: Table) -> None:
        """Raise UserError where rows with these columns cannot be written."""
        rules = self.options.rules.of(str(table.path))
        if rules is None:
            return
        if rules.catalog_table_rule and UNKNOWN not in [c.type for c in table.columns]:
            self._check_table(table)
        _checks(table, rules)

    def prepare(self, tables: Sequence[Table], opening: Opening = ANYBODY) -> Sequence[Committable]:
        """Check what is known about the tables before rows flow."""
        for table in tables:
            self._seen.add(str(table.path))
            if table.columns:
                self._check_table(table)
        return ()

    def write(self, tables: Tables, staging: Staging) -> Sequence[Committable]:
        """Check every row and return how many there are."""
        return [Committable(1, str(r.table.path), self._check_rows(r), 0, None) for r in tables]

    def finish(self, rows: Mapping[str, int]) -> None:
        """Check how many rows each table had, and which tables had any."""
        for path in sorted(self._seen | set(rows)):
            rules = self.options.rules.of(path)
            if rules:
                _fail(path, _count_failures(rules, rows.get(path, 0)))
        if not self._seen and not rows and not self.options.rules.tables_configs:
            _fail("any", _count_failures(self.options.rules, 0))
        for named in self.options.rules.tables_configs:
            if named.table_path not in self._seen | set(rows):
                _fail(named.table_path, _count_failures(named, 0))
        wanted = set(self.options.rules.table_names)
        found = {path for path, count in rows.items() if count}
        if wanted and wanted != found:
            raise UserError(
                f"Sink Assert: rows arrived for the tables {_listed(found)}, but table-names says"
                f" {_listed(wanted)}.",
                code="sink.assert_failed",
            )

    def _check_table(self, table: Table) -> None:
        path = str(table.path)
        rules = self.options.rules.of(path)
        if path not in self._checked and rules and rules.catalog_table_rule:
            found = table_failures(rules.catalog_table_rule, table)
            _fail(path, (f"catalog_table_rule: {text}" for text in found))
        self._checked.add(path)

    def _check_rows(self, rows: Rows) -> int:
        path = str(rows.table.path)
        self._seen.add(path)
        self._check_table(rows.table)
        rules = self.options.rules.of(path)
        checks = _checks(Rows.of(rows.table, rows.frame).table, rules) if rules else []
        aggregates = [sql for check in checks for sql in _aggregates(check)]
        (counted,) = rows.frame.selectExpr("count(1)", *aggregates).collect()
        total, *found = counted
        _fail(path, _value_failures(checks, found))
        if rules:  # one slice alone may be too much already
            most = (r for r in rules.row_rules if r.rule_type == "MAX_ROW")
            _fail(path, (_row_failure(r, total) for r in most if total > r.rule_value))
        return int(total)


def _checks(table: Table, rules: TableRules) -> list[Check]:
    path, types = str(table.path), {c.name: c.type for c in table.columns}
    try:
        return list(field_checks(rules, types))
    except ValueError as error:
        raise UserError(
            f"Sink Assert, table {path}: {error}.", code="sink.assert_failed", table=path
        ) from error


def _aggregates(check: Check) -> tuple[str, str]:
    """Return how many rows fail a check, and the value of one of them."""
    value = f"coalesce(CAST({quote(check.field)} AS STRING), 'null')"
    return f"count_if({check.fails})", f"first(IF({check.fails}, {value}, NULL), TRUE)"


def _value_failures(checks: Sequence[Check], found: Sequence[object]) -> Iterator[str]:
    for check, count, value in zip(checks, found[::2], found[1::2], strict=True):
        if count:
            rows = "1 row" if count == 1 else f"{count} rows"
            yield f"field '{check.field}', {check.asks}: fails for {rows}, such as {value!r}"


def _count_failures(rules: TableRules, count: int) -> Iterator[str]:
    for rule in rules.row_rules:
        too_many = rule.rule_type == "MAX_ROW" and count > rule.rule_value
        too_few = rule.rule_type == "MIN_ROW" and count < rule.rule_value
        if too_many or too_few:
            yield _row_failure(rule, count)


def _row_failure(rule: RowRule, count: int) -> str:
    return f"{rule.rule_type} = {rule.rule_value}: there are {count} rows"


def _fail(path: str, failures: Iterable[str]) -> None:
    """Raise a message that lists the failures, if there are any."""
    found = list(failures)
    if not found:
        return
    more = f" And {len(found) - SHOWN_MAX} more." if len(found) > SHOWN_MAX else ""
    listed = ". ".join(found[:SHOWN_MAX])
    raise UserError(
        f"Sink Assert, table {path}: {listed}.{more}", code="sink.assert_failed", table=path
    )


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "(none)"
