"""The options that every plug-in of a role takes, and how they are separated from its own."""

import re
from dataclasses import dataclass
from typing import Any

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import describe, option, options
from holdfast.connect.plugin import Plugin
from holdfast.connect.transform import Transform
from holdfast.errors import SourceLocation
from holdfast.model.job import Role
from holdfast.model.tree import Block, Entry, Items, Node, Scalar

INPUT_KEYS = ("plugin_input", "source_table_name")
OUTPUT_KEYS = ("plugin_output", "result_table_name")


@dataclass(frozen=True, slots=True)
class Name:
    """A dataset's name and where the job file says it."""

    text: str
    place: SourceLocation


@dataclass(frozen=True, slots=True)
class Inputs:
    """The datasets a stage reads: one name, several with commas between, or a list."""

    names: tuple[Name, ...]

    type_text = "name or list of names"

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "Inputs":
        """Read the names; blanks around them and empty ones are dropped."""
        parts = node.items if isinstance(node, Items) else (node,)
        if not all(isinstance(part, Scalar) for part in parts):
            raise ValueError('it holds dataset names: give "a", "a,b" or ["a", "b"]')
        scalars = [part for part in parts if isinstance(part, Scalar)]
        return cls(tuple(Name(t, part.place) for part in scalars for t in _split(part.text)))


@dataclass(frozen=True, slots=True)
class TablePattern:
    """A regular expression that must match a table's whole path."""

    pattern: re.Pattern[str]

    type_text = "regular expression"

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "TablePattern":
        """Compile the expression."""
        if not isinstance(node, Scalar) or node.value is None:
            raise ValueError("it is a regular expression: give text")
        try:
            return cls(re.compile(node.text))
        except re.error as error:
            raise ValueError(
                f"'{node.text}' is not a regular expression: {error}."
                " It must match whole table paths, such as 'shop\\\\..*'"
            ) from error

    def matches(self, path: str) -> bool:
        """Say whether the whole path matches."""
        return self.pattern.fullmatch(path) is not None


@options
class SourceCommon:
    """Options of every source."""

    #: The name of this source's rows; transforms and sinks name it as their plugin_input.
    plugin_output: str | None = option(None, aliases=OUTPUT_KEYS[1:])
    #: How many readers share the work; without it, that of env.
    parallelism: int | None = option(None, at_least=1)
    #: The column that says when a row happened: a timestamp, a date, or milliseconds since 1970.
    #: Without it, that of env.
    watermark_column: str | None = option(None, key="watermark.column")
    #: By how many seconds rows may come out of order; without it, that of env.
    watermark_delay: float | None = option(None, key="watermark.delay.seconds", at_least=0)
    #: After how many seconds without rows this source holds nothing back; without it, that of env.
    watermark_idle: float | None = option(None, key="watermark.idle.seconds", at_least=0)
    #: A name that stays when the job file changes: a savepoint's positions go to the stage of the
    #: same uid.  Without it, a stage is known by its plug-in and its options.
    uid: str | None = None


@options
class TransformCommon:
    """Options of every transform."""

    #: The datasets this transform reads.
    plugin_input: Inputs | None = option(None, aliases=INPUT_KEYS[1:])
    #: The name of this transform's rows; later transforms and sinks name it as plugin_input.
    plugin_output: str | None = option(None, aliases=OUTPUT_KEYS[1:])
    #: How many writers share the work; without it, that of the first input.
    parallelism: int | None = option(None, at_least=1)


@options
class TableTransformCommon(TransformCommon):
    """Options of every transform that sees one table at a time."""

    #: Which tables to change, as a regular expression over the whole table path; the others pass
    #: through.  Without it, all.
    table_match_regex: TablePattern | None = None
    #: Options of its own for each named table: blocks with a table_path.  They win over
    #: table_match_regex.
    table_transform: list[Block] = option([])


@options
class SinkCommon:
    """Options of every sink."""

    #: The datasets this sink writes.
    plugin_input: Inputs | None = option(None, aliases=INPUT_KEYS[1:])
    #: How many writers share the work; without it, that of the first input.
    parallelism: int | None = option(None, at_least=1)
    #: Accepted from SeaTunnel job files; Spark writes all tables in parallel without it.
    multi_table_sink_replica: int | None = option(None, at_least=1)
    #: A name that stays when the job file changes: a savepoint's positions go to the stage of the
    #: same uid.  Without it, a stage is known by its plug-in and its options.
    uid: str | None = None


_KEYS: dict[type[object], frozenset[str]] = {
    cls: frozenset(key for info in describe(cls) for key in (info.key, *info.aliases))
    for cls in (SourceCommon, TransformCommon, TableTransformCommon, SinkCommon)
}


def common_class(role: Role, kind: type[Plugin[Any]] | None) -> type[object]:
    """Return the class of the options that a plug-in shares with others of its role."""
    if role is Role.TRANSFORM:
        alone = isinstance(kind, type) and issubclass(kind, Transform) and not kind.per_table
        return TransformCommon if alone else TableTransformCommon
    return SourceCommon if role is Role.SOURCE else SinkCommon


def separate(block: Block, cls: type[object]) -> tuple[Block, Block]:
    """Return a plug-in's block as (its common options, its own)."""
    heads = {key.split(".")[0] for key in _KEYS[cls]}  # a dotted key may stand as a block
    common = tuple(e for e in block.entries if e.key.split(".")[0] in heads)
    heads |= {"plugin_name", *INPUT_KEYS, *OUTPUT_KEYS}  # idle where a role has no such end
    own = tuple(e for e in block.entries if e.key.split(".")[0] not in heads)
    return Block(common, block.place), Block(own, block.place)


def find_entry(block: Block, keys: tuple[str, ...]) -> Entry | None:
    """Return the first entry there is under one of these keys."""
    return next((e for key in keys for e in block.entries if e.key == key), None)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
