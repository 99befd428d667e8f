"""Guards that read the source: names that are written out in it."""

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.api.metrics import METRICS
from holdfast.config import PREFIX, Config
from holdfast.connect.options import describe
from tests.mutants.table import BUGS
from tests.sim.engine.labels import known
from tests.sim.mutants.catalogue import MUTANTS
from tools.rename_table import python_files

DOTTED = re.compile(r"holdfast(\.\w+)+")
RUN = re.compile(r"-m\s+((?:holdfast|tests|benchmarks|examples|tools)(?:\.\w+)*)")
SLASHED = re.compile(r"(?:holdfast|tests|tools|benchmarks)(?:/\w+)+\.py")
DOCUMENTS = ("Makefile", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "pyproject.toml")


def trees(root: Path, top: str = "holdfast") -> Iterator[tuple[Path, ast.Module]]:
    """Yield the files below a folder as syntax trees."""
    for path in python_files(root):
        if path.relative_to(root).parts[0] == top:
            yield path, ast.parse(path.read_text())


def metrics(root: Path) -> dict[str, Any]:
    """Return the metrics by name: the kind of each."""
    return {metric.name: metric.kind for metric in METRICS}


def exit_codes(root: Path) -> dict[str, Any]:
    """Return what the command line ends with, as its source says it: so many times each."""
    found: dict[str, int] = {}
    for path, tree in trees(root):
        if "cli" not in path.parts:
            continue
        constants = {
            target.id: ast.unparse(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in [*_calls(tree, "exit"), *_calls(tree, "Exit")]:
            said = ast.unparse(call.args[0]) if call.args else "0"
            value = constants.get(said, said)
            found[value] = found.get(value, 0) + 1
    return found


def environment(root: Path) -> dict[str, Any]:
    """Return the environment variables that we know."""
    found = {f"{PREFIX}{info.name.upper()}": "option of a node" for info in describe(Config)}
    for _, tree in trees(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name in re.findall(r"\bHOLDFAST_[A-Z_]*[A-Z]\b", node.value):
                    found.setdefault(name, "named in the source")
    return found


def labels(root: Path) -> dict[str, Any]:
    """Return the labels of durable steps of masters, and the failpoints of workers."""
    found = dict.fromkeys(sorted(known()), "master")
    for _, tree in trees(root):
        for name in ("pass_now", "failpoint"):
            for call in _calls(tree, name):
                if call.args and isinstance(call.args[0], ast.Constant):
                    found[str(call.args[0].value)] = "worker"
    return found


def mutants(root: Path) -> dict[str, Any]:
    """Return planted bugs, with whether the place of each is there."""
    found: dict[str, Any] = {f"sim: {name}": sorted(m.fires) for name, m in MUTANTS.items()}
    for bug in BUGS:
        path = root / bug.file
        there = path.is_file() and path.read_text().count(bug.stands) == 1
        found[f"real: {bug.name}"] = "planted" if there else "ITS PLACE IS GONE"
    return found


def dotted_strings(root: Path) -> dict[str, Any]:
    """Return the names of ours in strings and documents that are not to be found.

    Some only look like modules, such as properties of tables: they are in the first snapshot.
    """
    found: dict[str, Any] = {}
    good = 0
    for where, name in [*_in_strings(root), *_in_documents(root)]:
        if _resolves(name, root):
            good += 1
        else:
            found.setdefault(name, where)
    if not good:
        raise SystemExit("No dotted name was found at all: this guard looks in the wrong place.")
    return found


def _in_strings(root: Path) -> Iterator[tuple[str, str]]:
    for path in python_files(root):
        if path.name.startswith(("rename", "guards")) or path.parent == root / "tests" / "tools":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
                if DOTTED.fullmatch(text) or SLASHED.fullmatch(text):
                    yield str(path.relative_to(root)), text
                for name in RUN.findall(text):
                    yield str(path.relative_to(root)), name


def _in_documents(root: Path) -> Iterator[tuple[str, str]]:
    paths = [*(root / name for name in DOCUMENTS), *sorted((root / "docs").glob("*.md"))]
    for path in paths:
        text = path.read_text()
        for name in [*RUN.findall(text), *SLASHED.findall(text)]:
            yield str(path.relative_to(root)), name


def _resolves(name: str, root: Path) -> bool:
    if "/" in name:
        return (root / name).is_file()
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            if importlib.util.find_spec(".".join(parts[:length])) is None:
                continue
        except ModuleNotFoundError:
            continue
        if length == len(parts):
            return True
        value: Any = importlib.import_module(".".join(parts[:length]))
        for part in parts[length:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func
            plain = called.attr if isinstance(called, ast.Attribute) else ""
            if name in (plain, called.id if isinstance(called, ast.Name) else ""):
                yield node
