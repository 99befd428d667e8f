"""Rewrite a job file in today's names: older names of options and plug-ins, and nothing else.

The text is changed only at the names; comments, order and layout stay.  A name that cannot be
changed in place is reported with its place.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.connect.options import describe
from holdfast.connect.plugin import Plugin
from holdfast.connect.registry import Registry
from holdfast.errors import JobFileProblem, SourceLocation
from holdfast.model.job import Role
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.common import INPUT_KEYS, OUTPUT_KEYS
from holdfast.plan.env import EnvOptions

QUOTES = "\"'`"
KEY_ENDS = " \t\r\n=:{+,)"
"""What may follow a key that has no quotes."""


@dataclass(frozen=True, slots=True)
class Renamed:
    """A name that has been changed."""

    place: SourceLocation
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.place}: {self.old} is {self.new} now."


@dataclass
class Rewritten:
    """A job file in today's names, what was changed, and what is left to do by hand."""

    text: str = ""
    renamed: list[Renamed] = field(default_factory=list)
    left: list[JobFileProblem] = field(default_factory=list)


def rewritten(text: str, file: str, tree: Block, registry: Registry) -> Rewritten:
    """Return a file in today's names; `tree` is what was parsed from its text."""
    done = Rewritten()
    cuts: list[tuple[int, int, str]] = []
    starts = _line_starts(text)
    for found in _old_names(tree, registry):
        if found.place.file != file:
            done.left.append(JobFileProblem(found.place, f"{found} Convert that file too."))
            continue
        start = starts[found.place.line - 1] + found.place.column - 1
        length = _written(text, start, found.old)
        if found.twice:
            said = f"'{found.new}' is there too and wins: remove '{found.old}'."
            done.left.append(JobFileProblem(found.place, said))
        elif not length:
            said = f"{found} It is not written in one piece, so change it by hand."
            done.left.append(JobFileProblem(found.place, said))
        else:
            quote = text[start] if text[start] in QUOTES else ""
            cuts.append((start, start + length, f"{quote}{found.new}{quote}"))
            done.renamed.append(Renamed(found.place, found.old, found.new))
    for start, end, new in sorted(cuts, reverse=True):
        text = text[:start] + new + text[end:]
    done.text = text
    done.renamed.sort(key=lambda one: one.place)
    return done


@dataclass(frozen=True, slots=True)
class _Old:
    place: SourceLocation
    old: str
    new: str
    twice: bool = False

    def __str__(self) -> str:
        return f"'{self.old}' is '{self.new}' now."


def _old_names(tree: Block, registry: Registry) -> Iterator[_Old]:
    env = tree.get("env")
    if isinstance(env, Block):
        yield from _options(env, EnvOptions)
    for role in Role:
        stages = tree.get(role.value)
        for stage in stages.items if isinstance(stages, Items) else ():
            if isinstance(stage, Block):
                yield from _stage(role, stage, registry)


def _stage(role: Role, stage: Block, registry: Registry) -> Iterator[_Old]:
    name = stage.find("plugin_name")
    if not (name and isinstance(name.node, Scalar)):
        return
    kind: type[Plugin[object]] | None = registry.find(role, name.node.text)
    if kind is None:
        return
    if kind.name != name.node.text:
        yield _Old(name.node.place, name.node.text, kind.name)
    own = kind.options_class
    for ends in (INPUT_KEYS, OUTPUT_KEYS):  # also where they have no effect
        yield from _aliases(stage, ends[0], ends[1:])
    yield from _options(stage, own)
    each = stage.find("table_transform") if role is Role.TRANSFORM else None
    for block in _blocks(each.node) if each else ():
        yield from _options(block, own)


def _options(block: Block, cls: type) -> Iterator[_Old]:
    for info in describe(cls):
        yield from _aliases(block, info.key, info.aliases)
        for name in (info.key, *info.aliases) if info.inner else ():
            entry = block.find(name)
            for inner in _blocks(entry.node) if entry else ():
                assert info.inner
                yield from _options(inner, info.inner)


def _aliases(block: Block, key: str, aliases: Sequence[str]) -> Iterator[_Old]:
    today = block.find(key)
    for alias in aliases:
        chain = _chain(block, alias)
        longer = key.startswith(alias + ".")  # today's name begins with the older one
        if chain and not (longer and isinstance(chain[-1].node, Block)):
            # The last part of a dotted key has the place of the whole key.
            yield _Old(chain[-1].place, alias, key, twice=today is not None)


def _blocks(node: Node) -> Iterator[Block]:
    parts = node.items if isinstance(node, Items) else (node,)
    yield from (part for part in parts if isinstance(part, Block))


def _chain(block: Block, path: str) -> list[Entry]:
    """Return the entries that lead to a dotted path, or nothing."""
    for entry in block.entries:
        if entry.key == path:
            return [entry]
        if isinstance(entry.node, Block) and path.startswith(entry.key + "."):
            rest = _chain(entry.node, path[len(entry.key) + 1 :])
            if rest:
                return [entry, *rest]
    return []


def _written(text: str, start: int, name: str) -> int:
    """Return how many characters a name takes here, its quotes included; 0: it is not here."""
    if start < len(text) and text[start] in QUOTES:
        quoted = f"{text[start]}{name}{text[start]}"
        return len(quoted) if text.startswith(quoted, start) else 0
    end = start + len(name)
    whole = text.startswith(name, start) and (end == len(text) or text[end] in KEY_ENDS)
    return len(name) if whole else 0


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for at, char in enumerate(text):
        if char == "\n":
            starts.append(at + 1)
    return starts
