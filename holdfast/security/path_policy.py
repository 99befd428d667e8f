"""Which files a job may name: none of the machine's own, and none outside the operator's roots.

A job runs with the rights of its worker.  What only the machine or Holdfast itself should read is
refused before a job is accepted: the kernel's files, which hold other processes' environments, and
Holdfast's home, which holds tokens.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from holdfast.errors import JobFileError, JobFileProblem
from holdfast.files import state_dir
from holdfast.model import job as model
from holdfast.model.tree import Block, Items, Node, Scalar

NEVER = ("/proc", "/sys", "/dev")
NAMES = ("path", "file_path", "paths", "tmp_path", "warehouse", "location", "root_path")
PLAIN = ("file://", "file:")


class PathPolicy:
    """The folders that job files may name; without any, all but those that are never allowed."""

    def __init__(self, roots: Sequence[str] = ()) -> None:
        self._roots = [_real(r) for r in roots]
        self._never = [*NEVER, _real(str(state_dir.root() / "cluster"))]

    def check(self, job: model.JobPlan) -> None:
        """Raise every path of a job that is not allowed, with its place."""
        wrong = [
            JobFileProblem(node.place, f"{stage.id}: {why}")
            for stage in job.stages
            for node in _paths(stage.options)
            if (why := self._refused(str(node.value)))
        ]
        if wrong:
            raise JobFileError(wrong)

    def _refused(self, text: str) -> str:
        path = next((text.removeprefix(p) for p in PLAIN if text.startswith(p)), text)
        if not path.startswith("/"):
            return ""  # of another file system, or relative to where the worker was started
        # A glob may reach whatever lies below its first folders without a star.
        fixed = path
        for mark in "*?[{":
            fixed = fixed.partition(mark)[0]
        here = _real(fixed)
        if any(
            _within(here, never) or (_within(never, here) and fixed != path)
            for never in self._never
        ):
            return f"{text} is among the machine's own files, which no job may name."
        if self._roots and not any(_within(here, root) for root in self._roots):
            roots = ", ".join(self._roots)
            return f"{text} is outside the folders that jobs may use here: {roots}."
        return ""


def _paths(node: Node, key: str = "") -> Iterator[Scalar]:
    match node:
        case Block(entries=entries):
            for entry in entries:
                yield from _paths(entry.node, entry.key.rpartition(".")[2].lower())
        case Items(items=items):
            for item in items:
                yield from _paths(item, key)
        case Scalar(value=str()) if key in NAMES:
            yield node


def _real(path: str) -> str:
    return os.path.realpath(str(PurePosixPath(Path(path))))


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
