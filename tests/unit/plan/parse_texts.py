"""Job files as texts, for the tests of their readers."""

from collections.abc import Mapping

from holdfast.connect.checks import CheckReport
from holdfast.model.tree import Block, Items, Node, Plain, Scalar, to_plain
from holdfast.plan.formats.hocon import Read
from holdfast.plan.load import parse_job

SHAPE = {"env": {}, "source": [], "transform": [], "sink": []}
"""A job in which nothing stands."""


def read_from(files: Mapping[str, str]) -> Read:
    """Return a reader of files that are in memory."""

    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return files[path]

    return read


def job(
    text: str,
    file: str = "job.conf",
    variables: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
) -> Block:
    """Return the tree of a text that has no mistake; a variable need not be set."""
    report = CheckReport(allow_unset=True)
    tree = parse_job(text, file, variables or {}, read_from(files or {}), report)
    assert tree is not None, [str(m) for m in report.mistakes]
    assert report.mistakes == []
    return tree


def parsed(text: str, file: str = "job.conf", **more: Mapping[str, str]) -> dict[str, Plain]:
    """Return a job without places, leaving out what is empty."""
    plain = to_plain(job(text, file, **more))
    assert isinstance(plain, dict)
    return {key: value for key, value in plain.items() if value != SHAPE.get(key)}


def env(text: str, **more: Mapping[str, str]) -> Plain:
    """Return the env of a HOCON job that has nothing else."""
    found = parsed(f"env {{\n{text}\n}}", **more)
    assert set(found) <= {"env"}
    return found.get("env", {})


def errors(text: str, file: str = "job.conf", **more: Mapping[str, str]) -> list[str]:
    """Return the mistakes of a text, without the file's name."""
    report = CheckReport()
    files = more.get("files")
    read = read_from(files) if files is not None else None
    assert parse_job(text, file, more.get("variables", {}), read, report) is None
    return [str(m).removeprefix(file + ":") for m in report.mistakes]


def warnings(text: str, file: str = "job.conf") -> list[str]:
    """Return what a good text is warned of, without the file's name."""
    report = CheckReport()
    assert parse_job(text, file, {}, None, report) is not None
    return [str(m).removeprefix(file + ":") for m in report.warnings]


def places(node: Node, path: str = "") -> dict[str, str]:
    """Return line:column of every key and item, by path, and of its value if that is elsewhere."""
    found: dict[str, str] = {}
    match node:
        case Block(entries=entries):
            for entry in entries:
                here = f"{path}/{entry.key}"
                found[here] = f"{entry.place.line}:{entry.place.column}"
                value = f"{entry.node.place.line}:{entry.node.place.column}"
                if value != found[here]:
                    found[here] += f" {value}"
                found |= places(entry.node, here)
        case Items(items=items):
            for i, item in enumerate(items):
                found[f"{path}/{i}"] = f"{item.place.line}:{item.place.column}"
                found |= places(item, f"{path}/{i}")
        case Scalar():
            pass
    return found
