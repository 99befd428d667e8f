"""What a job record keeps of a job file: enough to plan the same job again, on any machine.

The tree is kept after includes and variables were filled in, with the places of its values, so
that an error found hours later still names the line of the file.
"""

import json
from dataclasses import dataclass
from typing import Any

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.errors import SourceLocation, UserError
from holdfast.model.job import JobPlan
from holdfast.model.tree import Block, Entry, Items, Node, Scalar
from holdfast.plan.check import check_job

VERSION = 1


@dataclass(frozen=True, slots=True)
class JobSource:
    """A parsed job file and how it is to be read.  `name` wins over the file's job.name."""

    file: str
    tree: Block
    name: str | None = None
    lenient: bool = False
    allow_python: bool = False

    def job(self, registry: Registry, report: CheckReport | None = None) -> JobPlan:
        """Check and plan the job.  Raises every mistake together."""
        # Without a report the job comes from a record: what it ignores was said at the submit.
        report = report or CheckReport(lenient=self.lenient, settled=self.lenient)
        python = self.allow_python
        job = check_job(self.tree, self.file, registry, report, name=self.name, allow_python=python)
        report.raise_if_any()
        assert job is not None
        return job


def encode_spec(spec: JobSource) -> str:
    """Return a spec as text for a record."""
    kept = {
        "version": VERSION,
        "file": spec.file,
        "name": spec.name,
        "lenient": spec.lenient,
        "allow_python": spec.allow_python,
        "tree": _pack(spec.tree, spec.file),
    }
    return json.dumps(kept, separators=(",", ":"))


def decode_spec(text: str) -> JobSource:
    """Read a spec back.  Raises `UserError` for one of a version that is not known."""
    kept = json.loads(text)
    if kept.get("version") != VERSION:
        raise UserError(
            f"The job was submitted by another version of Holdfast ({kept.get('version')}; this"
            f" one knows {VERSION}). Upgrade this process.",
            code="spec.version",
        )
    tree = _unpack(kept["tree"], kept["file"])
    assert isinstance(tree, Block)
    return JobSource(kept["file"], tree, kept["name"], kept["lenient"], kept["allow_python"])


def _pack(node: Node, file: str) -> list[Any]:
    where: list[Any] = [node.place.line, node.place.column]
    if node.place.file != file:
        where.append(node.place.file)
    match node:
        case Scalar(value, text):
            return ["s", where, value, text]
        case Items(items):
            return ["i", where, [_pack(item, file) for item in items]]
        case Block(entries):
            packed = [[e.key, [e.place.line, e.place.column], _pack(e.node, file)] for e in entries]
            return ["b", where, packed]


def _unpack(packed: list[Any], file: str) -> Node:
    kind, where, *rest = packed
    place = SourceLocation(where[2] if len(where) > 2 else file, where[0], where[1])
    match kind:
        case "s":
            return Scalar(rest[0], rest[1], place)
        case "i":
            return Items(tuple(_unpack(item, file) for item in rest[0]), place)
        case _:
            entries = (
                Entry(key, _unpack(node, file), SourceLocation(place.file, *at))
                for key, at, node in rest[0]
            )
            return Block(tuple(entries), place)
