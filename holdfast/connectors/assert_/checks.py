"""The checks behind the rules: those that Spark makes on rows, and those on what is known."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.connect.literals import WHOLE, comparable, literal
from holdfast.connectors.assert_.options import (
    CatalogTableRule,
    ColumnRule,
    ConstraintRule,
    FieldRule,
    TableRules,
    ValueRule,
)
from holdfast.model.table import Column, Key, Table
from holdfast.model.types import UNKNOWN, Type, quote

Constraint = tuple[str, str, tuple[tuple[str, str], ...]]
"""A constraint's name, kind and (column, ASC or DESC) pairs."""

NUMBERS = (*WHOLE, "float", "double", "decimal")


@dataclass(frozen=True, slots=True)
class Check:
    """One rule for a column: what it asks, and an SQL condition that is true where it fails."""

    field: str
    asks: str
    fails: str


def field_checks(rules: TableRules, types: dict[str, Type]) -> Iterator[Check]:
    """Yield a check for each rule.  Raises ValueError if a rule cannot fit its column."""
    for rule in rules.field_rules:
        kind = types.get(rule.field_name)
        if kind is None:
            known = ", ".join(types)
            raise ValueError(f"there is no field '{rule.field_name}'. Fields: {known}")
        if kind == UNKNOWN:
            continue
        if rule.field_type:
            yield _type_check(rule, rule.field_type.type, kind)
        for value in rule.field_value:
            yield from _value_checks(rule.field_name, value, kind)


def table_failures(rule: CatalogTableRule, table: Table) -> Iterator[str]:
    """Yield what is not as the rule says about the table itself."""
    if rule.primary_key_rule:
        yield from _key_failures(rule, table.primary_key)
    if rule.constraint_key_rule is not None:
        wanted = Counter(_constraint(c) for c in rule.constraint_key_rule)
        found = Counter((k.name, k.kind, _key_columns(k)) for k in table.constraints)
        if wanted != found:
            yield f"its constraints are {_listed(found)}, not {_listed(wanted)}"
    if rule.column_rule is not None:
        yield from _column_failures(rule.column_rule, table)
    if rule.table_path is not None and rule.table_path != str(table.path):
        yield f"its path is {table.path}, not {rule.table_path}"
    identifier = rule.table_identifier_rule
    if identifier and (table.catalog, str(table.path)) != (
        identifier.catalog_name,
        identifier.table,
    ):
        yield (
            f"it is {table.path} of {table.catalog or 'an unnamed catalog'},"
            f" not {identifier.table} of {identifier.catalog_name}"
        )


def _type_check(rule: FieldRule, wanted: Type, found: Type) -> Check:
    name = quote(rule.field_name)
    fails = "FALSE" if _fits(wanted, found) else f"{name} IS NOT NULL"
    if wanted.kind == found.kind == "decimal" and wanted.scale == found.scale:
        # As in SeaTunnel, the digits of each value count, not those of the column.
        fails = f"{name} IS NOT NULL AND TRY_CAST({name} AS {wanted.ddl}) IS NULL"
    return Check(rule.field_name, f"field_type = {wanted} (it is {found})", fails)


def _fits(wanted: Type, found: Type) -> bool:
    """Say whether values of a type pass for another; the names of a row's fields do not count."""
    if wanted.kind != found.kind:
        return wanted.ddl == found.ddl
    if wanted.kind == "decimal":
        return wanted.scale == found.scale
    return len(wanted.parts) == len(found.parts) and all(
        _fits(w, f) for w, f in zip(wanted.parts, found.parts, strict=True)
    )


def _value_checks(field: str, rule: ValueRule, kind: Type) -> Iterator[Check]:
    name = quote(field)
    if rule.rule_type:
        asks: str = rule.rule_type
        if rule.rule_value is not None and "NULL" not in asks:
            asks += f" = {rule.rule_value:g}"
        yield Check(field, asks, _rule_sql(name, rule.rule_type, rule.rule_value or 0.0, kind))
    if rule.equals_to:
        try:
            wanted = literal(rule.equals_to.node, kind)
        except ValueError as error:
            raise ValueError(f"field '{field}', equals_to: {error}") from error
        left, right = comparable(name, kind), comparable(wanted, kind)
        # A null passes, as in SeaTunnel: NOT_NULL is a rule of its own.
        yield Check(
            field, f"equals_to {wanted}", f"{name} IS NOT NULL AND NOT ({left} <=> {right})"
        )


def _rule_sql(name: str, rule: str, bound: float, kind: Type) -> str:
    number = f"CAST('{bound!r}' AS DOUBLE)"
    length = f"coalesce(length(CAST({name} AS STRING)), 0)"
    match rule:
        case "NULL":
            return f"{name} IS NOT NULL"
        case "NOT_NULL":
            return f"{name} IS NULL"
        case "MIN_LENGTH":
            return f"{length} < {number}"
        case "MAX_LENGTH":
            return f"{length} > {number}"
        case _ if kind.kind not in NUMBERS:
            return "TRUE"
    sign = "<" if rule == "MIN" else ">"
    return f"{name} IS NULL OR CAST({name} AS DOUBLE) {sign} {number}"


def _key_failures(rule: CatalogTableRule, key: Key | None) -> Iterator[str]:
    wanted = rule.primary_key_rule
    assert wanted
    if key is None:
        yield "it has no primary key"
        return
    if wanted.primary_key_name is not None and wanted.primary_key_name != key.name:
        yield f"its primary key is named '{key.name}', not '{wanted.primary_key_name}'"
    columns = wanted.primary_key_columns
    if columns and Counter(columns) != Counter(key.columns):
        yield f"its primary key has columns {', '.join(key.columns)}, not {', '.join(columns)}"


def _constraint(rule: ConstraintRule) -> Constraint:
    columns = rule.constraint_key_columns
    pairs = tuple((c.constraint_key_column_name, c.constraint_key_sort_type) for c in columns)
    return rule.constraint_key_name, rule.constraint_key_type, pairs


def _key_columns(key: Key) -> tuple[tuple[str, str], ...]:
    sorts = key.sorts or ("ASC",) * len(key.columns)
    return tuple((c, s or "ASC") for c, s in zip(key.columns, sorts, strict=True))


def _column_failures(rules: list[ColumnRule], table: Table) -> Iterator[str]:
    extra = [n for n in table.names if n not in {r.name for r in rules}]
    if extra:
        yield f"it has columns that no rule names: {', '.join(extra)}"
    for rule in rules:
        column = table.column(rule.name)
        if column is None:
            yield f"it has no column '{rule.name}'. Columns: {', '.join(table.names)}"
        else:
            yield from _differences(rule, column)


def _differences(rule: ColumnRule, column: Column) -> Iterator[str]:
    default = None if column.default is None else str(column.default)
    compared = (
        ("type", rule.type.type.ddl, column.type.ddl),
        ("length", rule.column_length, column.length),
        ("nullable", rule.nullable, column.nullable),
        ("default value", rule.default_value, default),
        ("comment", rule.comment, column.comment),
    )
    for what, wanted, found in compared:
        if wanted is not None and wanted != found:
            yield f"column '{rule.name}' has {what} {found}, not {wanted}"


def _listed(keys: Counter[Constraint]) -> str:
    shown = (
        f"{name} ({kind}: {', '.join(f'{c} {s}' for c, s in columns)})"
        for name, kind, columns in sorted(keys.elements())
    )
    return "; ".join(shown) or "none"
