"""What is known about a table that flows through a job: its path, columns and keys.

The rows themselves are a DataFrame and live in `connect.tables`; this is the part a plan can show
without Spark.
"""

from dataclasses import dataclass, field, replace

from holdfast.model.types import Type

KIND = "__kind"
"""Hidden column of a changelog: INSERT, UPDATE_BEFORE, UPDATE_AFTER or DELETE."""

SEQUENCE = "__seq"
"""Hidden column of a changelog: grows with each change; the order changes must be applied in."""

HIDDEN = (KIND, SEQUENCE)

KINDS = {"INSERT": "+I", "UPDATE_BEFORE": "-U", "UPDATE_AFTER": "+U", "DELETE": "-D"}
"""Row kinds and their short names."""


@dataclass(frozen=True, slots=True)
class TablePath:
    """`table`, `database.table` or `database.schema.table`."""

    table: str
    database: str | None = None
    schema: str | None = None

    @classmethod
    def parse(cls, text: str) -> "TablePath":
        """Read a dotted path.  More than three parts belong to the database's name."""
        parts = text.split(".")
        match parts:
            case [table]:
                return cls(table)
            case [database, table]:
                return cls(table, database)
            case [*database, schema, table]:
                return cls(table, ".".join(database), schema)
        raise ValueError("a table path may not be empty")

    def __str__(self) -> str:
        return ".".join(p for p in (self.database, self.schema, self.table) if p)


@dataclass(frozen=True, slots=True)
class Column:
    """One column, as declared or as found."""

    name: str
    type: Type
    nullable: bool = True
    length: int = 0
    default: object = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A primary key or a constraint: its name, kind and (column, ASC or DESC) pairs."""

    name: str
    columns: tuple[str, ...]
    kind: str = "PRIMARY"
    sorts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table's path, columns and keys.  `catalog` names the connector that produced it."""

    path: TablePath
    columns: tuple[Column, ...] = ()
    primary_key: Key | None = None
    constraints: tuple[Key, ...] = ()
    partitions: tuple[str, ...] = ()
    comment: str = ""
    catalog: str = ""
    changelog: bool = field(default=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(c.name for c in self.columns)

    @property
    def ddl(self) -> str:
        """The visible columns as a Spark DDL string."""
        from_types = (f"`{c.name.replace('`', '``')}` {c.type.ddl}" for c in self.columns)
        return ", ".join(from_types)

    def column(self, name: str) -> Column | None:
        """Return the column of that name, or None."""
        return next((c for c in self.columns if c.name == name), None)

    def with_columns(self, columns: tuple[Column, ...]) -> "Table":
        """Return this table with other columns; keys survive only with all their columns."""
        names = {c.name for c in columns}
        kept = {c.name: c for c in self.columns}
        merged = tuple(
            replace(kept[c.name], type=c.type)
            if c.name in kept and kept[c.name].type == c.type
            else c
            for c in columns
        )
        key = self.primary_key
        return replace(
            self,
            columns=merged,
            primary_key=key if key and names.issuperset(key.columns) else None,
            constraints=tuple(k for k in self.constraints if names.issuperset(k.columns)),
            partitions=tuple(p for p in self.partitions if p in names),
        )
