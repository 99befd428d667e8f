"""The labels of durable steps, read from the masters' source.

Every call that changes something durable must go through `Ports.durable` under a label.  A label
is written out, or is a keeper's: the record and the event that changes it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import holdfast.core
import holdfast.master

DURABLE = {
    "store": {"commit", "grant_lease", "keep_lease", "revoke_lease"},
    "blobs": {"put", "drop"},
    "tables": {"publish", "listen", "sweep"},
}
"""Port -> its calls that change something durable."""

RECORDS = {"job": {"job"}, "pipeline": {"pipeline", "task", "checkpoint", "completion", "commit"}}
"""Record -> the core modules whose events change it."""


def open_labels() -> list[str]:
    """Return labels that are neither written out nor the keeper's own."""
    found = []
    for module, tree in sources("master"):
        for call in _labelled_calls(tree):
            label = call.args[0]
            passed_on = (
                isinstance(label, ast.Name) and label.id == "label" and module == "leader_store"
            )
            if not passed_on and not isinstance(label, ast.Constant):
                found.append(f"{module}.py:{call.lineno} {ast.unparse(label)}")
    return found


def sources(package: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules of a package, by name, as syntax trees."""
    found = holdfast.core if package == "core" else holdfast.master
    for path in sorted(Path(found.__path__[0]).glob("*.py")):
        yield path.stem, ast.parse(path.read_text())


def known() -> set[str]:
    """Return every label that a master may pass."""
    trees = dict(sources("master"))
    written = {label for tree in trees.values() for label in _written(tree)}
    made = {name for tree in trees.values() for name in _made(tree)}
    handled = {name: record for record, names in _handled().items() for name in names}
    return written | {f"{handled[name]}.{name}" for name in made if name in handled}


def unlabelled() -> list[str]:
    """Return the durable calls in masters that do not go through a label."""
    found = []
    for module, tree in sources("master"):
        labelled = list(_labelled_calls(tree))
        passed = {n.id for call in labelled for n in call.args if isinstance(n, ast.Name)}
        safe = {id(n) for call in labelled for n in ast.walk(call)}
        safe |= {id(n) for meaning in _meanings(tree, passed) for n in ast.walk(meaning)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _is_durable(node) and id(node) not in safe:
                found.append(f"{module}.py:{node.lineno} {ast.unparse(node)}")
    return found


def _is_durable(node: ast.Attribute) -> bool:
    """Whether this names a durable call: `...store.commit`, `...tables.sweep` and so on."""
    return node.attr in DURABLE.get(_name(node.value).lstrip("_"), set())


def _labelled_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == "durable":
            yield node


def _meanings(tree: ast.AST, names: set[str]) -> Iterator[ast.AST]:
    """What names that were handed to `durable` stand for: functions, or values assigned."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef) and node.name in names:
            yield node
        elif isinstance(node, ast.Assign) and {_name(t) for t in node.targets} & names:
            yield node.value


def _written(tree: ast.AST) -> Iterator[str]:
    """Labels that are written out: handed to `durable`, or to the desk's `write` or `save`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in ("durable", "write", "save"):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def _made(tree: ast.AST) -> Iterator[str]:
    """Names of classes that are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield _called(node)


def _handled() -> dict[str, set[str]]:
    """Record -> the events its core's `step` knows by name."""
    found: dict[str, set[str]] = {record: set() for record in RECORDS}
    for module, tree in sources("core"):
        defined = {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
        matched = {_name(n.cls) for n in ast.walk(tree) if isinstance(n, ast.MatchClass)}
        for record, modules in RECORDS.items():
            if module in modules:
                found[record] |= defined & matched
    return found


def _called(call: ast.Call) -> str:
    return _name(call.func)


def _name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
