"""Read and check the text of a job, as the command line does with a file.

Nothing of this machine gets into it: no include is read and no environment variable is filled in
but those that the operator has named.
"""

import os
from collections.abc import Sequence

from holdfast.api.problems import TOLD_MAX, told
from holdfast.api.requests import CheckText
from holdfast.api.views import CheckResult, ProblemView
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.errors import JobFileError, JobFileProblem, SourceLocation, UserError
from holdfast.model.tree import Block, Items, Node, Scalar
from holdfast.plan.load import JobFileFormat, parse_job
from holdfast.plan.record import JobSource, decode_spec
from holdfast.plan.show import plan_data

DEPTH_MAX = 64
"""How deep the blocks of a job may be nested; none that a person wrote comes near it."""

NODES_MAX = 200_000


class Reader:
    """Turns text into a job.  `environment` names the variables that jobs may use."""

    def __init__(
        self, registry: Registry, *, allow_python: bool = False, environment: Sequence[str] = ()
    ) -> None:
        self.registry = registry
        self.allow_python = allow_python
        self.environment = tuple(environment)

    def spec(self, asked: CheckText, report: CheckReport) -> JobSource:
        """Parse a text.  Raises every mistake together."""
        known = {n: os.environ[n] for n in self.environment if n in os.environ}
        file = asked.file or "job.conf"
        try:
            tree = parse_job(
                asked.text, file, {**known, **asked.variables}, None, report, _format(asked.format)
            )
        except RecursionError as error:
            raise _too_deep(file) from error
        if tree is None:
            report.raise_if_any()
            raise AssertionError("a text that does not parse has mistakes")
        _check_shape(tree, file)
        return JobSource(file, tree, asked.name or None, asked.lenient)

    def check(self, asked: CheckText) -> CheckResult:
        """Return every mistake of a text, or how the job would look."""
        report = CheckReport(lenient=asked.lenient, allow_unset=asked.allow_unset)
        try:
            planned = self.spec(asked, report).job(self.registry, report)
        except JobFileError as error:
            return CheckResult(False, _told(error.mistakes), _told(error.warnings), {})
        plan: dict[str, object] = {**plan_data(planned, self.registry)}
        return CheckResult(True, [], _told(report.warnings), plan)


def read_spec(text: str) -> JobSource:
    """Read what a client has parsed, as distrustfully as any text."""
    try:
        spec = decode_spec(text)
        shapes = (spec.file, str), (spec.lenient, bool), (spec.allow_python, bool)
        if not all(isinstance(value, kind) for value, kind in shapes):
            raise TypeError("a setting of another type")
        if spec.name is not None and not isinstance(spec.name, str):
            raise TypeError("a name of another type")
        _check_shape(spec.tree, spec.file)
        _check_values(spec.tree)
    except JobFileError:
        raise
    except (
        ValueError, KeyError, TypeError, IndexError, AttributeError, AssertionError, RecursionError,
    ) as error:  # fmt: skip
        raise UserError(f"The job cannot be read: {error!r}.", code="spec.damaged") from error
    return spec


def _check_values(node: Node) -> None:
    place = node.place
    if not (isinstance(place.line, int) and isinstance(place.column, int)):
        raise TypeError("a place that is none")
    match node:
        case Scalar(value=value, text=text):
            if not isinstance(text, str) or isinstance(value, dict | list):
                raise TypeError("a value that is none")
        case Items(items=items):
            for item in items:
                _check_values(item)
        case Block(entries=entries):
            for entry in entries:
                if not isinstance(entry.key, str):
                    raise TypeError("a key that is none")
                _check_values(entry.node)


def _told(mistakes: Sequence[JobFileProblem]) -> list[ProblemView]:
    return [ProblemView(*told(m)) for m in mistakes[:TOLD_MAX]]


def _format(name: str) -> JobFileFormat | None:
    if not name:
        return None
    try:
        return JobFileFormat(name.lower())
    except ValueError:
        good = ", ".join(JobFileFormat)
        raise UserError(
            f"'{name}' is no format of a job. Good ones: {good}.", code="request"
        ) from None


def _too_deep(file: str) -> JobFileError:
    said = f"The blocks are nested deeper than {DEPTH_MAX}."
    return JobFileError([JobFileProblem(SourceLocation(file, 1, 1), said)])


def _check_shape(tree: Block, file: str) -> None:
    """Refuse what only wants to fill the memory, such as YAML whose aliases multiply."""
    level: list[Node] = [tree]
    seen = 0
    for _ in range(DEPTH_MAX):
        seen += len(level)
        if seen > NODES_MAX:
            said = f"The job has more than {NODES_MAX:,} values."
            raise JobFileError([JobFileProblem(SourceLocation(file, 1, 1), said)])
        below: list[Node] = []
        for node in level:
            if isinstance(node, Block):
                below += (e.node for e in node.entries)
            elif isinstance(node, Items):
                below += node.items
        level = below
        if not level:
            return
    raise _too_deep(file)
