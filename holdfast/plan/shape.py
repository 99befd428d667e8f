"""Give every job the same shape: lists of plug-ins, each a block that starts with its name."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.connect.checks import CheckReport
from holdfast.errors import SourceLocation
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.syntax import ROLES

NAME = "plugin_name"


def shape_job(tree: Block, file: str, report: CheckReport) -> Block:
    """Return a job with env, source, transform and sink, whether or not its file has them all.

    A plug-in may be `{plugin_name: FakeSource, ...}`, `{FakeSource: {...}}`, or an entry of a
    block; other top-level keys are kept.
    """
    start = SourceLocation(file, 1, 1)
    entries = [
        replace(e, node=_plugins(e.key, e.node, report)) if e.key in ROLES else e
        for e in tree.entries
    ]
    present = {e.key for e in entries}
    if "env" not in present:
        entries.append(Entry("env", Block((), start), start))
    entries += [Entry(role, Items((), start), start) for role in ROLES if role not in present]
    return Block(tuple(entries), tree.place)


def _plugins(role: str, node: Node, report: CheckReport) -> Items:
    match node:
        case Items(items=items):
            made = [p for item in items for p in _from_item(role, item, report)]
        case Block(entries=entries) if _name(node) is None:
            made = [p for entry in entries for p in _from_entry(role, entry, report)]
        case Block():
            made = [_named(node)]
        case Scalar(value=None):
            made = []
        case Scalar():
            report.error(
                node.place, f"{role} must be a block or a list of plug-ins. Write {role} {{ ... }}."
            )
            made = []
    return Items(tuple(made), node.place)


def _from_item(role: str, item: Node, report: CheckReport) -> Iterator[Block]:
    if isinstance(item, Block) and _name(item) is not None:
        yield _named(item)
    elif isinstance(item, Block) and len(item.entries) == 1:
        yield from _from_entry(role, item.entries[0], report)
    else:
        report.error(
            item.place,
            f"This {role} has no name. Give it a {NAME}, or write it as Name {{ ... }}.",
        )


def _from_entry(role: str, entry: Entry, report: CheckReport) -> Iterator[Block]:
    """Yield the plug-in that a key names; YAML writes one without options as nothing at all."""
    options = entry.node
    if isinstance(options, Scalar) and options.value is None:
        options = Block((), entry.place)
    if not isinstance(options, Block):
        report.error(
            entry.place,
            f"'{entry.key}' is a plug-in here, so its options must be in a block."
            f" Write {entry.key} {{ ... }}.",
        )
        return
    named = Entry(NAME, Scalar(entry.key, entry.key, entry.place), entry.place)
    own = tuple(e for e in options.entries if e.key != NAME)
    yield Block((options_name(options) or named, *own), entry.place)


def options_name(options: Block) -> Entry | None:
    """Return the entry that names a plug-in, if its block has one."""
    return next((e for e in options.entries if e.key == NAME), None)


def _name(block: Block) -> Scalar | None:
    node = block.get(NAME)
    return node if isinstance(node, Scalar) and node.text else None


def _named(block: Block) -> Block:
    """Return the block with its name first."""
    first = [e for e in block.entries if e.key == NAME]
    rest = [e for e in block.entries if e.key != NAME]
    return Block((*first, *rest), block.place)
