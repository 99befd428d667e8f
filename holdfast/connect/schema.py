"""Read a `schema { ... }` block: what a user says about the columns and keys of a table."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.connect.checks import CheckReport
from holdfast.connect.convert import nearest, shown
from holdfast.model.table import Column, Key, Table, TablePath
from holdfast.model.tree import Block, Items, Node, Plain, Scalar, to_plain
from holdfast.model.types import Type, parse_type, row

KNOWN = (
    "table", "fields", "columns", "primaryKey", "constraintKeys", "comment", "schema_first",
    "metadata_datatype",
)  # fmt: skip
COLUMN_KEYS = ("name", "type", "nullable", "columnLength", "columnScale", "defaultValue", "comment")
KEY_KINDS = ("INDEX_KEY", "KEY", "UNIQUE_KEY", "FOREIGN_KEY", "VECTOR_INDEX_KEY")


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns and keys a job file declares.  No columns: the data itself must say."""

    table: Table

    type_text = "schema"

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "Schema":
        """Read the block; every mistake in it is reported."""
        if not isinstance(node, Block):
            raise ValueError("a schema is a block { ... }")
        for entry in node.entries:
            if entry.key not in KNOWN:
                hint = nearest(entry.key, list(KNOWN)) or f" Its options: {', '.join(KNOWN)}."
                report.unknown(entry.place, f"{where}: unknown option '{entry.key}'.{hint}")
        path = _text(node.get("table"))
        columns = tuple(_fields(node.get("fields"), where, report))
        columns += tuple(_columns(node.get("columns"), where, report))
        names = [c.name for c in columns]
        for name in {n for n in names if names.count(n) > 1}:
            report.error(
                node.place, f"{where}: column '{name}' occurs twice. Rename or remove one."
            )
        table = Table(
            path=TablePath.parse(path) if path else TablePath(""),
            columns=columns,
            primary_key=_primary_key(node.get("primaryKey"), where, names, report),
            constraints=tuple(_constraints(node.get("constraintKeys"), where, names, report)),
            comment=_text(node.get("comment")),
        )
        return cls(table)

    def identity(self) -> Plain:
        """Return what identifies this table: its path, and its columns' names."""
        path = {"table": str(self.table.path)} if self.table.path.table else {}
        return {**path, "columns": ", ".join(self.table.names)}

    def table_at(self, default: str, catalog: str) -> Table:
        """Return the table, under a default path where the user named none."""
        path = self.table.path if self.table.path.table else TablePath.parse(default)
        return replace(self.table, path=path, catalog=catalog)


def type_from_node(node: Node, where: str, report: CheckReport) -> Type | None:
    """Read a type: text such as `map<string, int>`, or a block of fields."""
    if isinstance(node, Block):
        parts = {e.key: type_from_node(e.node, f"{where}.{e.key}", report) for e in node.entries}
        if any(t is None for t in parts.values()):
            return None
        return row({k: t for k, t in parts.items() if t})
    if not isinstance(node, Scalar):
        report.error(node.place, f"{where}: a type is text or a block of fields.")
        return None
    try:
        return parse_type(node.text)
    except ValueError as error:
        report.error(node.place, f"{where}: {error}.")
        return None


def _fields(node: Node | None, where: str, report: CheckReport) -> Iterator[Column]:
    if node is None:
        return
    if not isinstance(node, Block):
        report.error(node.place, f"{where}.fields must be a block {{ ... }}, not {shown(node)}.")
        return
    for entry in node.entries:
        found = type_from_node(entry.node, f"{where}.fields.{entry.key}", report)
        if found:
            yield Column(entry.key, found)


def _columns(node: Node | None, where: str, report: CheckReport) -> Iterator[Column]:
    if node is None:
        return
    if not isinstance(node, Items):
        report.error(node.place, f"{where}.columns must be a list [ ... ], not {shown(node)}.")
        return
    for i, item in enumerate(node.items):
        here = f"{where}.columns[{i}]"
        if not isinstance(item, Block):
            report.error(item.place, f"{here} must be a block {{ ... }}, not {shown(item)}.")
            continue
        for entry in item.entries:
            if entry.key not in COLUMN_KEYS:
                hint = nearest(entry.key, list(COLUMN_KEYS))
                report.unknown(entry.place, f"{here}: unknown option '{entry.key}'.{hint}")
        name, kind = _text(item.get("name")), item.get("type")
        if not name or kind is None:
            report.error(item.place, f"{here}: a column needs a 'name' and a 'type'.")
            continue
        found = type_from_node(kind, f"{here}.type", report)
        if found:
            yield _column(name, found, item)


def _column(name: str, kind: Type, item: Block) -> Column:
    default = item.get("defaultValue")
    length = _text(item.get("columnLength"))
    return Column(
        name=name,
        type=kind,
        nullable=_text(item.get("nullable")).lower() != "false",
        length=int(length) if length.isdigit() else 0,
        default=to_plain(default) if default else None,
        comment=_text(item.get("comment")),
    )


def _primary_key(
    node: Node | None, where: str, names: list[str], report: CheckReport
) -> Key | None:
    if node is None:
        return None
    if not isinstance(node, Block):
        report.error(
            node.place, f"{where}.primaryKey must be a block {{ ... }}, not {shown(node)}."
        )
        return None
    columns = _texts(node.get("columnNames"))
    _check_columns(columns, names, f"{where}.primaryKey", node, report)
    return Key(_text(node.get("name")), columns)


def _constraints(
    node: Node | None, where: str, names: list[str], report: CheckReport
) -> Iterator[Key]:
    if node is None:
        return
    for i, item in enumerate(node.items if isinstance(node, Items) else (node,)):
        here = f"{where}.constraintKeys[{i}]"
        if not isinstance(item, Block):
            report.error(item.place, f"{here} must be a block {{ ... }}, not {shown(item)}.")
            continue
        kind = _text(item.get("constraintType")).upper()
        if kind not in KEY_KINDS:
            report.error(
                item.place, f"{here}: constraintType must be one of {', '.join(KEY_KINDS)}."
            )
        listed = item.get("constraintColumns")
        blocks = (
            [n for n in listed.items if isinstance(n, Block)] if isinstance(listed, Items) else []
        )
        columns = tuple(_text(b.get("columnName")) for b in blocks)
        _check_columns(columns, names, here, item, report)
        sorts = tuple(_text(b.get("sortType")).upper() for b in blocks)
        yield Key(_text(item.get("constraintName")), columns, kind, sorts)


def _check_columns(
    columns: tuple[str, ...], names: list[str], where: str, node: Node, report: CheckReport
) -> None:
    for column in columns:
        if names and column not in names:
            known = ", ".join(names)
            hint = nearest(column, names) or f" Columns: {known}."
            report.error(node.place, f"{where}: there is no column '{column}'.{hint}")


def _text(node: Node | None) -> str:
    return node.text if isinstance(node, Scalar) and node.value is not None else ""


def _texts(node: Node | None) -> tuple[str, ...]:
    if isinstance(node, Items):
        return tuple(_text(n) for n in node.items)
    return (_text(node),) if node is not None else ()
