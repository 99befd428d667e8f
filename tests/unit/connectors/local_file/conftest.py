"""Build LocalFile plug-ins from plain options, as a job file would."""

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.connect.checks import CheckReport
from holdfast.connect.options import read_options
from holdfast.connect.plugin import PluginContext
from holdfast.connectors.files.sink_options import LocalFileSinkOptions
from holdfast.connectors.files.source import LocalFileSource
from holdfast.connectors.files.source_options import LocalFileSourceOptions
from holdfast.connectors.files.writer import LocalFileSink
from holdfast.errors import SourceLocation
from holdfast.model.job import Mode
from holdfast.model.tree import Block, Entry, Items, Node, Scalar

HERE = SourceLocation("job.conf", 1, 1)


def node(value: Any) -> Node:
    """Return a plain value as a parsed job file has it."""
    if isinstance(value, dict):
        return Block(tuple(Entry(k, node(v), HERE) for k, v in value.items()), HERE)
    if isinstance(value, list):
        return Items(tuple(node(v) for v in value), HERE)
    return Scalar(value, str(value).lower() if isinstance(value, bool) else str(value), HERE)


def block(options: dict[str, Any]) -> Block:
    """Return options as the block of a plug-in."""
    made = node(options)
    assert isinstance(made, Block)
    return made


def context(mode: Mode = Mode.BATCH, checkpointing: bool = False) -> PluginContext:
    """Return a context as the engine makes it."""
    return PluginContext("7", "job", "Stage[0]-LocalFile", mode, 1, checkpointing)


@pytest.fixture
def mistakes() -> Callable[..., list[str]]:
    """Return what is wrong with options, as a user reads it."""

    def check(cls: type, **options: Any) -> list[str]:
        report = CheckReport()
        read_options(cls, block(options), "LocalFile", report)
        return [m.message for m in report.mistakes]

    return check


@pytest.fixture
def source() -> Callable[..., LocalFileSource]:
    """Make a source; the job's mode may be given."""

    def make(
        mode: Mode = Mode.BATCH, checkpointing: bool = False, **options: Any
    ) -> LocalFileSource:
        report = CheckReport()
        made = read_options(LocalFileSourceOptions, block(options), "LocalFile", report)
        report.raise_if_any()
        assert made is not None
        return LocalFileSource(made, context(mode, checkpointing))

    return make


@pytest.fixture
def sink() -> Callable[..., LocalFileSink]:
    """Make a sink."""

    def make(mode: Mode = Mode.BATCH, **options: Any) -> LocalFileSink:
        report = CheckReport()
        made = read_options(LocalFileSinkOptions, block(options), "LocalFile", report)
        report.raise_if_any()
        assert made is not None
        return LocalFileSink(made, context(mode))

    return make
