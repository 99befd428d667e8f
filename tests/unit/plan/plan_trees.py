"""Trees and plug-ins for the tests of plans: no parser, no connector, no Spark."""

from types import ModuleType
from typing import Any, ClassVar

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import options
from holdfast.connect.registry import Registry
from holdfast.connect.sink import Sink
from holdfast.connect.source import Source
from holdfast.connect.transform import Transform
from holdfast.errors import SourceLocation
from holdfast.model.job import Guarantee, JobPlan
from holdfast.model.secret import Secret
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.check import check_job

FILE = "job.conf"


@options
class RowsOptions:
    count: int = 5  #: How many.
    password: Secret | None = None  #: Never shown.
    pin: Secret | None = None  #: Never shown either.


@options
class RenameOptions:
    to: str  #: The new name.


@options
class JoinOptions:
    on: str = "id"  #: The column to join on.


@options
class Nothing:
    pass


class RowsSource(Source[RowsOptions]):
    name = "Rows"


class PrintSink(Sink[Nothing]):
    name = "Print"
    guarantee: ClassVar[Guarantee] = Guarantee.AT_LEAST_ONCE


class BothSource(Source[Nothing]):
    name = "Both"


class BothSink(Sink[Nothing]):
    name = "Both"


class RenameTransform(Transform[RenameOptions]):
    name = "Rename"


class JoinTransform(Transform[JoinOptions]):
    name = "Join"
    per_table = False

    @classmethod
    def joins(cls, options: JoinOptions, inputs: tuple[str, ...]) -> bool:
        return len(inputs) > 1


class CodeTransform(Transform[Nothing]):
    name = "Code"
    needs_python = True


class OldTransform(Transform[Nothing]):
    name = "Old"
    refused = "it left the building. Use Rename."


def registry() -> Registry:
    """A registry of the plug-ins above."""
    found = Registry()
    module = ModuleType("plan_plugins")
    vars(module).update(globals())
    found.add(module)
    return found


class _Lines:
    """Gives each thing of a tree a line of its own, so that places can be told apart."""

    def __init__(self) -> None:
        self.line = 0

    def next(self) -> SourceLocation:
        self.line += 1
        return SourceLocation(FILE, self.line, 1)


def tree(value: dict[str, Any]) -> Block:
    """Return a tree: dicts are blocks, lists are lists, `None` a null; each key has its line."""
    made = _node(value, _Lines())
    assert isinstance(made, Block)
    return made


def _node(value: Any, lines: _Lines) -> Node:
    if isinstance(value, dict):
        place = SourceLocation(FILE, lines.line + 1, 1)
        entries = []
        for key, inner in value.items():
            at = lines.next()
            entries.append(Entry(key, _node(inner, lines), at))
        return Block(tuple(entries), place)
    if isinstance(value, list):
        place = SourceLocation(FILE, lines.line, 1)
        return Items(tuple(_node(item, lines) for item in value), place)
    text = (
        "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )
    return Scalar(value, text, SourceLocation(FILE, max(lines.line, 1), 1))


def plugin(name: str, **given: Any) -> dict[str, Any]:
    """Return the block of a plug-in.  `_in` and `_out` are its plugin_input and plugin_output."""
    names = {"_in": "plugin_input", "_out": "plugin_output"}
    return {"plugin_name": name} | {names.get(k, k): v for k, v in given.items()}


def job_tree(source: Any, transform: Any, sink: Any, **env: Any) -> Block:
    """Return the tree of a whole job."""
    given = {k.replace("_", "."): v for k, v in env.items()}
    return tree({"env": given, "source": source, "transform": transform, "sink": sink})


def check(job: Block, *, lenient: bool = False, **more: Any) -> tuple[JobPlan | None, CheckReport]:
    """Check a tree against the plug-ins above."""
    report = CheckReport(lenient=lenient)
    return check_job(job, FILE, registry(), report, **more), report


def checked(job: Block, **more: Any) -> JobPlan:
    """Return the job of a tree that has no mistakes."""
    made, report = check(job, **more)
    assert not report.mistakes
    assert made
    return made


def errors(job: Block, **more: Any) -> list[str]:
    """Return the mistakes of a tree, without their file."""
    made, report = check(job, **more)
    assert made is None
    return [f"{m.place.line}: {m.message}" for m in sorted(report.mistakes)]


__all__ = ["check", "checked", "errors", "job_tree", "plugin", "registry", "tree"]
