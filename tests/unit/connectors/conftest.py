"""Ways to build a connector from what a job file would say."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import read_options
from holdfast.connect.plugin import PluginContext
from holdfast.connect.sink import Staging
from holdfast.errors import SourceLocation
from holdfast.model.job import Mode
from holdfast.model.tree import Block, Entry, Items, Node, Scalar

HERE = SourceLocation("job.conf", 1, 1)


def as_node(value: Any) -> Node:
    """Return the tree a file with this value would give."""
    if isinstance(value, dict):
        return Block(tuple(Entry(k, as_node(v), HERE) for k, v in value.items()), HERE)
    if isinstance(value, list):
        return Items(tuple(as_node(v) for v in value), HERE)
    text = str(value).lower() if isinstance(value, bool) or value is None else str(value)
    return Scalar(value, text, HERE)


@pytest.fixture
def node() -> Callable[[Any], Node]:
    """`node([1, {"a": 2}])`: the tree a file with this value would give."""
    return as_node


@pytest.fixture
def make() -> Callable[..., Any]:
    """`make(Console, {"log.print.data": False})`: a connector with these options."""

    def made(
        kind: Any,
        given: dict[str, Any],
        mode: Mode = Mode.BATCH,
        parallelism: int = 1,
        checkpointing: bool = False,
        output: str | None = "fake",
        job_id: str = "1",
    ) -> Any:
        report = CheckReport()
        block = as_node(given)
        assert isinstance(block, Block)
        read = read_options(kind.options_class, block, kind.name, report)
        report.raise_if_any()
        stage = f"Source[0]-{kind.name}"
        checkpointing = checkpointing or mode is Mode.STREAMING
        return kind(
            read,
            PluginContext(job_id, "test", stage, mode, parallelism, checkpointing, False, output),
        )

    return made


@pytest.fixture
def mistakes() -> Callable[..., list[str]]:
    """`mistakes(Console, {...})`: what is wrong with these options."""

    def found(kind: Any, given: dict[str, Any]) -> list[str]:
        report = CheckReport()
        block = as_node(given)
        assert isinstance(block, Block)
        read_options(kind.options_class, block, kind.name, report)
        return [m.message for m in report.mistakes]

    return found


@pytest.fixture
def staging() -> Staging:
    """The first try at the first slice of a task."""
    return Staging("1", "t", 1, 1)
