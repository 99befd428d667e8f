"""The rules of the Assert sink, as job files give them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from holdfast.connect.checks import CheckReport
from holdfast.connect.literals import AnyValue
from holdfast.connect.options import option, options
from holdfast.connect.schema import type_from_node
from holdfast.model.tree import Node
from holdfast.model.types import Type

Problem = tuple[str, str]


@dataclass(frozen=True, slots=True)
class FieldType:
    """A column type: text such as `map<string, int>`, or a block of fields."""

    type: Type

    type_text = "type"

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "FieldType | None":
        """Read the type; mistakes in it are reported."""
        found = type_from_node(node, where, report)
        return cls(found) if found else None


@options
class RowRule:
    """How many rows a table must have when the job ends."""

    #: MAX_ROW: at most rule_value rows; MIN_ROW: at least.
    rule_type: Literal["MAX_ROW", "MIN_ROW"]
    #: The number of rows.
    rule_value: int


@options
class ValueRule:
    """What each value of a column must be."""

    #: What to check: that values are null or not, or a bound for numbers or for lengths of text.
    rule_type: Literal["NULL", "NOT_NULL", "MIN", "MAX", "MIN_LENGTH", "MAX_LENGTH"] | None = None
    #: The bound of MIN, MAX, MIN_LENGTH and MAX_LENGTH.
    rule_value: float | None = None
    #: What each value that is not null must equal, written as a FakeSource row would hold it.
    equals_to: AnyValue | None = None

    def problems(self) -> Iterator[Problem]:
        """Yield what no single option can see is wrong."""
        if self.rule_type and self.rule_type.startswith(("MIN", "MAX")) and self.rule_value is None:
            yield "rule_type", f"rule_type = {self.rule_type} needs a rule_value."


@options
class FieldRule:
    """What a column must be like."""

    #: The column.
    field_name: str
    #: The type its values must have; a column that holds only nulls passes.
    field_type: FieldType | None = None
    #: Rules for its values.
    field_value: list[ValueRule] = option([])


@options
class PrimaryKeyRule:
    """What the primary key must be."""

    #: The name of the key.
    primary_key_name: str | None = None
    #: The columns of the key, in any order.
    primary_key_columns: list[str] = option([])


@options
class KeyColumn:
    """A column of a constraint."""

    #: The column.
    constraint_key_column_name: str
    #: How the key sorts it.
    constraint_key_sort_type: Literal["ASC", "DESC"] = "ASC"


@options
class ConstraintRule:
    """A constraint that the table must have."""

    #: The name of the constraint.
    constraint_key_name: str
    #: Its kind.
    constraint_key_type: Literal[
        "INDEX_KEY", "KEY", "UNIQUE_KEY", "FOREIGN_KEY", "VECTOR_INDEX_KEY"
    ]
    #: Its columns, in order.
    constraint_key_columns: list[KeyColumn]


@options
class ColumnRule:
    """A column that the table must have."""

    #: The column.
    name: str
    #: Its type.
    type: FieldType
    #: Its declared length.
    column_length: int | None = None
    #: Whether it may hold nulls.
    nullable: bool | None = None
    #: Its declared default value.
    default_value: str | None = None
    #: Its declared comment.
    comment: str | None = None


@options
class IdentifierRule:
    """Which table it must be."""

    #: The connector or catalog that the table comes from, such as FakeSource.
    catalog_name: str
    #: The table's path.
    table: str


@options
class CatalogTableRule:
    """What is known about the table must be this."""

    #: The path the table must have.
    table_path: str | None = None
    #: The primary key it must have.
    primary_key_rule: PrimaryKeyRule | None = None
    #: All constraints it must have, in any order.
    constraint_key_rule: list[ConstraintRule] | None = None
    #: All columns it must have, in any order; of each, what the rule names is compared.
    column_rule: list[ColumnRule] | None = None
    #: Its path and where it comes from.
    table_identifier_rule: IdentifierRule | None = None


@options
class TableRules:
    """The rules for one table."""

    #: How many rows the table must have.  (Job files in circulation misspell it as rule_ruls.)
    row_rules: list[RowRule] = option([], aliases=("rule_ruls",))
    #: What its columns and their values must be.
    field_rules: list[FieldRule] = option([])
    #: What must be known about the table.
    catalog_table_rule: CatalogTableRule | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to check."""
        return not (self.row_rules or self.field_rules or self.catalog_table_rule)


@options
class NamedTableRules(TableRules):
    """The rules for the table at a path."""

    #: The path of the table.
    table_path: str


@options
class Rules(TableRules):
    """Rules for every table that arrives, or for some by path."""

    #: The tables that must have rows when the job ends: these and no others.
    table_names: list[str] = option([], key="table-names")
    #: Rules for tables by path; then rules outside of it do not count.
    tables_configs: list[NamedTableRules] = option([], aliases=("table_list",))

    def problems(self) -> Iterator[Problem]:
        """Yield what no single option can see is wrong."""
        if self.is_empty and not self.table_names and not self.tables_configs:
            yield (
                "",
                "rules are empty. Give row_rules, field_rules, catalog_table_rule, table-names"
                " or tables_configs.",
            )

    def of(self, path: str) -> TableRules | None:
        """Return the rules for the table at a path, or None if it has none."""
        if not self.tables_configs:
            return self
        return next((t for t in self.tables_configs if t.table_path == path), None)


@options
class AssertOptions:
    """What to check."""

    #: The rules; each that fails fails the job.
    rules: Rules
