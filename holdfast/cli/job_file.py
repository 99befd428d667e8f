"""Read a job file from disk and check it; shared by every verb that takes one."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.errors import UserError
from holdfast.model.job import JobPlan
from holdfast.model.tree import Block, Scalar
from holdfast.plan.check import check_job, draft_job
from holdfast.plan.load import decode_job, parse_job


def read_tree(file: Path, variables: Mapping[str, str], report: CheckReport) -> Block:
    """Parse a job file.  Raises all syntax mistakes together."""
    text = decode_job(read_bytes(file), str(file))
    # A variable that -i does not give may stand in the environment, as a password should.
    known = {k: v for k, v in os.environ.items() if k.isupper()} | dict(variables)
    tree = parse_job(text, str(file), known, include, report)
    if tree is None:
        report.raise_if_any()
        raise AssertionError("a file that does not parse has mistakes")
    return tree


def checked(
    tree: Block,
    file: Path,
    registry: Registry,
    report: CheckReport,
    *,
    name: str | None = None,
    allow_python: bool = False,
) -> JobPlan:
    """Check a parsed job file.  Raises every mistake together."""
    job = check_job(tree, str(file), registry, report, name=name, allow_python=allow_python)
    report.raise_if_any()
    assert job is not None
    return job


def drafted(
    tree: Block, file: Path, registry: Registry, report: CheckReport, *, allow_python: bool
) -> tuple[JobPlan, frozenset[str]]:
    """Return what a file says of its job, and its stages with mistakes, which are reported.

    Raises where these mistakes are all that can be found.
    """
    parsed_well = not report.mistakes  # else there are values that nobody filled in
    draft = draft_job(tree, str(file), registry, report, allow_python=allow_python)
    if draft.job is None or not parsed_well:
        report.raise_if_any()
        raise AssertionError("a file that says too little has mistakes")
    return draft.job, draft.broken


def spark_settings(tree: Block) -> dict[str, str]:
    """Return `env { spark.* }`, needed before the rest of the file has been checked."""
    env = tree.get("env")
    if not isinstance(env, Block):
        return {}
    return {
        path: entry.node.text
        for path, entry in env.leaves()
        if path.startswith("spark.") and isinstance(entry.node, Scalar)
    }


def read_bytes(file: Path, what: str = "job file") -> bytes:
    """Return a file's bytes, or say why it cannot be read.  `what` it is, for the message."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise UserError(_missing(file, what)) from None
    except IsADirectoryError:
        raise UserError(f"{file} is a directory. Give the path of a {what}.") from None
    except PermissionError:
        raise UserError(f"{file} may not be read by this user. Check its permissions.") from None


def tags(given: Sequence[str]) -> dict[str, str]:
    """Return `--tag k=v` values as a mapping."""
    return dict(item.partition("=")[::2] for item in given)


def include(path: str) -> str:
    """Return the text of a file that a job file includes."""
    return decode_job(Path(path).read_bytes(), path)


def _missing(file: Path, what: str) -> str:
    there = sorted(p.name for p in file.parent.glob("*.conf")) if file.parent.is_dir() else []
    hint = f" Beside it: {', '.join(there[:5])}." if there and what == "job file" else ""
    return f"{what.capitalize()} {file} does not exist.{hint or ' Check the path.'}"
