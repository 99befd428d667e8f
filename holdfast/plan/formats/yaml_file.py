"""YAML job files: the shape of JSON ones, read with places and without surprises.

Only the nodes that PyYAML composes are used, so no Python object is ever built from a file.  Words
such as `no` and `on` stay text, and only what looks like a number in HOCON is one.
"""

from typing import Any

import yaml

from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.syntax import DEPTH_MAX, ROLES, LineIndex, Unreadable, plain

ALIASED_MAX = 10_000
"""How many values aliases may add to those that the file has."""

_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def parse_yaml(text: str, file: str) -> Block:
    """Return the tree of a YAML job file.  Raises Unreadable at the first mistake."""
    lines = LineIndex(file, text)
    try:
        root, count = _compose(text, lines)
    except yaml.reader.ReaderError as error:
        raise Unreadable(
            lines.at(error.position), f"This is not YAML: {error.reason}. Remove it."
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise Unreadable(
            lines.at(mark.index if mark else 0), f"This is not YAML: {what}. Correct it."
        ) from None
    if not isinstance(root, yaml.MappingNode):
        raise Unreadable(lines.at(0), "A YAML job is a mapping with env, source and sink.")
    return _Reader(lines, count + ALIASED_MAX).job(root)


class _Composer(yaml.SafeLoader):
    """Composes nodes, but no tags, and no deeper than a job may nest."""

    def __init__(self, text: str, lines: LineIndex) -> None:
        super().__init__(text)
        self.lines = lines
        self.count = 0
        self.depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        place = self.lines.at(event.start_mark.index)
        if getattr(event, "tag", None) is not None:
            raise Unreadable(place, f"The tag {event.tag} is not supported. Remove it.")
        self.count += 1
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise Unreadable(place, f"This nests deeper than {DEPTH_MAX}. Nest less.")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(text: str, lines: LineIndex) -> tuple[Any, int]:
    """Return the root node, and how many nodes the file has."""
    composer = _Composer(text, lines)
    try:
        return composer.get_single_node(), composer.count
    finally:
        composer.dispose()


class _Reader:
    """Turns nodes into the tree, and counts them: aliases could make very many."""

    def __init__(self, lines: LineIndex, count_max: int) -> None:
        self.lines = lines
        self.count_max = count_max
        self.count = 0
        self.depth = 0

    def job(self, root: yaml.MappingNode) -> Block:
        """Read the top level, where a role's mapping may name a plug-in more than once."""
        entries = []
        for key, value in self._pairs(root):
            if key.value in ROLES and isinstance(value, yaml.MappingNode):
                entries.append(self._entry(key, self._plugins(value)))
            else:
                entries.append(self._entry(key, self._node(value)))
        return Block(tuple(entries), self.lines.at(root.start_mark.index))

    def _plugins(self, node: yaml.MappingNode) -> Node:
        place = self.lines.at(node.start_mark.index)
        if any(key.value == "plugin_name" for key, _ in node.value):
            return Items((self._node(node),), place)
        single = (self._entry(k, self._node(v)) for k, v in self._pairs(node, unique=False))
        return Items(tuple(Block((entry,), entry.place) for entry in single), place)

    def _entry(self, key: yaml.ScalarNode, node: Node) -> Entry:
        return Entry(key.value, node, self.lines.at(key.start_mark.index))

    def _node(self, node: yaml.Node) -> Node:
        place = self.lines.at(node.start_mark.index)
        self._enter(node)
        made: Node
        if isinstance(node, yaml.MappingNode):
            made = Block(tuple(self._entry(k, self._node(v)) for k, v in self._pairs(node)), place)
        elif isinstance(node, yaml.SequenceNode):
            made = Items(tuple(self._node(item) for item in node.value), place)
        else:
            made = self._scalar(node)
        self.depth -= 1
        return made

    def _enter(self, node: yaml.Node) -> None:
        """Count a node; an alias of its own parent would never end."""
        self.depth += 1
        self.count += 1
        if self.depth > DEPTH_MAX or self.count > self.count_max:
            place = self.lines.at(node.start_mark.index)
            raise Unreadable(place, "Aliases make this job too large. Use fewer.")

    def _scalar(self, node: yaml.Node) -> Scalar:
        text, place = node.value, self.lines.at(node.start_mark.index)
        if getattr(node, "style", None) is not None:
            return Scalar(text, text, place)
        if text in _NULLS:
            return Scalar(None, text, place)
        if text in _BOOLS:
            return Scalar(_BOOLS[text], text, place)
        return plain(text, place)

    def _pairs(
        self, node: yaml.MappingNode, unique: bool = True
    ) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        """Return the keys and values of a mapping; what `<<` brings in comes first."""
        own: list[tuple[yaml.ScalarNode, yaml.Node]] = []
        brought: dict[str, tuple[yaml.ScalarNode, yaml.Node]] = {}
        names: set[str] = set()
        for key, value in node.value:
            place = self.lines.at(key.start_mark.index)
            if not isinstance(key, yaml.ScalarNode):
                raise Unreadable(place, "This key is not text. Write a plain word.")
            if key.tag == "tag:yaml.org,2002:merge":
                brought = {k.value: (k, v) for k, v in self._brought(value)} | brought
                continue
            if unique and key.value in names:
                raise Unreadable(place, f"The key '{key.value}' occurs twice. Remove one.")
            names.add(key.value)
            own.append((key, value))
        return [pair for name, pair in brought.items() if name not in names] + own

    def _brought(self, value: yaml.Node) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        """Return what the mapping, or the list of mappings, after a `<<` holds."""
        self._enter(value)
        if isinstance(value, yaml.MappingNode):
            pairs = self._pairs(value)
        elif isinstance(value, yaml.SequenceNode):
            pairs = [p for item in reversed(value.value) for p in self._brought(item)]
        else:
            place = self.lines.at(value.start_mark.index)
            raise Unreadable(place, "A << takes a mapping. Name one with an alias.")
        self.depth -= 1
        return pairs
