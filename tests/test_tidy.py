"""The house rules, as a test: who may import whom, and how large things may grow."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tools.copies import ceilings, copies, runs
from tools.copies import wrong as too_many
from tools.names import dead, shared_classes
from tools.names import production as sources
from tools.rooms import (
    CODE_LINES_MAX,
    EXCEPTIONS,
    FUNCTION_LINES_MAX,
    breaches,
    check,
    measure,
    production,
)

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "holdfast"
FILES = sorted(PACKAGE.rglob("*.py"))
BESIDE = [
    path
    for room in ("tests", "tools", "benchmarks")
    for path in sorted((ROOT / room).rglob("*.py"))
    if ".peers" not in path.parts
]

# Room -> the rooms of Holdfast it may import.  Nobody imports connectors.
MAY_IMPORT = {
    "errors": set(),
    "model": {"errors"},
    "connect": {"model", "errors"},
    "plan": {"connect", "model", "errors"},
    "store": {"model", "errors"},
    "core": {"model", "errors"},
    "wire": {"core", "model", "errors"},
    "master": {"core", "store", "wire", "model", "errors"},
    "testing": {"connect", "store", "model", "errors"},
    "connectors": {"connect", "model", "errors", "connectors"},
    "files": {"model", "errors"},
    "spark": {"connect", "files", "model", "errors"},
    "worker": {"wire", "core", "plan", "connect", "spark", "model", "errors"},
    "security": {"config", "files", "model", "errors"},
    "config": {"master", "master_urls", "plan", "connect", "files", "model", "errors"},
    "master_urls": set(),
    "client": {"api", "master", "master_urls", "model", "errors"},
    "api": {
        "config",
        "connect",
        "core",
        "errors",
        "master",
        "model",
        "plan",
        "security",
        "store",
        "wire",
    },
    "process": {
        "api",
        "config",
        "connect",
        "core",
        "errors",
        "master",
        "master_urls",
        "model",
        "plan",
        "files",
        "security",
        "spark",
        "store",
        "wire",
        "worker",
    },
    "cli": {
        "api",
        "client",
        "config",
        "connect",
        "errors",
        "model",
        "plan",
        "process",
        "files",
        "security",
        "spark",
        "worker",
    },
    "__init__": {"cli", "client", "connect", "model", "errors", "process"},
    "__main__": {"cli"},
}

ARCHITECTURE = ROOT / "ARCHITECTURE.md"

# Decisions are pure: time, ids and randomness arrive as arguments.
PURE = {"model", "plan", "core"}
IMPURE = {
    "asyncio", "time", "datetime", "random", "os", "socket", "threading", "uuid", "logging",
    "subprocess",
}  # fmt: skip

LAZY_ONLY = {"pyspark", "py4j"}
"""Imported inside methods, so that a master can check options without Spark."""


LATE = {"holdfast/cli/check.py": "a plain check is quick; only one that asks a cluster talks HTTP"}
"""Files whose functions may import ours, and why."""


def room(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def module_level_imports(tree: ast.Module) -> set[str]:
    return imports(
        ast.Module(
            [n for n in tree.body if not isinstance(n, (ast.If, ast.ClassDef, ast.FunctionDef))], []
        )
    )


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_table(path: Path) -> None:
    here = room(path)
    ours = {
        name.split(".")[1] if "." in name else "__init__"
        for name in imports(parsed(path))
        if name.split(".")[0] == "holdfast"
    }
    assert ours - {here} <= MAY_IMPORT[here], (
        f"{here} may not import {ours - MAY_IMPORT[here] - {here}}"
    )


def test_the_architecture_page_has_this_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", ARCHITECTURE.read_text(), re.M)
    told = {name: set() if may == "nothing" else set(may.split(", ")) for name, may in rows}
    assert told == {name: may - {name} for name, may in MAY_IMPORT.items()}


@pytest.mark.parametrize(
    "path", [f for f in FILES if room(f) in PURE], ids=lambda p: str(p.relative_to(ROOT))
)
def test_decisions_are_pure(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(parsed(path))} & IMPURE


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_spark_is_imported_late(path: Path) -> None:
    if path.name == "python_daemon.py":
        pytest.skip("runs inside Spark's Python workers, whose parent it is")
    assert not {name.split(".")[0] for name in module_level_imports(parsed(path))} & LAZY_ONLY


def test_rooms_keep_the_rules_of_size() -> None:
    """Four rules, and a list of exceptions that may only get shorter (tools/rooms.py)."""
    wrong = check(breaches(production()))
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize("path", BESIDE, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    figures = measure(path)
    assert figures.code <= CODE_LINES_MAX or not figures.functions, "only data may be longer"
    long = {name: n for name, n in figures.functions.items() if n > FUNCTION_LINES_MAX}
    assert not long, f"more than {FUNCTION_LINES_MAX} lines: {long}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_modules_say_what_they_are_for(path: Path) -> None:
    assert ast.get_docstring(parsed(path)), "a module starts with what it is for"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_functions_import_nothing_but_spark(path: Path) -> None:
    allowed = LAZY_ONLY | ({"holdfast"} if str(path.relative_to(ROOT)) in LATE else set())
    for node in ast.walk(parsed(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            late = {name.split(".")[0] for name in imports(node)}
            assert late <= allowed, f"{node.name} imports {late - allowed}"


def test_no_two_public_classes_share_a_name() -> None:
    assert not shared_classes(sources())


def test_nothing_is_defined_that_nothing_uses() -> None:
    """A new exception needs a reason; one that is used now is taken out."""
    excused = set(tomllib.loads(EXCEPTIONS.read_text())["dead"])
    found = set(dead(sources()))
    assert found - excused == set(), "nothing in production uses these: delete them"
    assert excused - found == set(), f"these are used or gone: take them out of {EXCEPTIONS.name}"


def test_no_two_files_share_more_lines_than_they_did() -> None:
    wrong = too_many(copies(), ceilings())
    assert not wrong, "\n".join(["", *wrong])


def test_checks_of_names_see_what_they_are_for() -> None:
    """Each finds what it is for in two small modules."""
    one = "class Shared: ...\ndef used(): ...\ndef unused(): ...\n"
    other = "class Shared:\n    def run(self): used()\nShared().run()\n"
    trees = {"a": ast.parse(one), "b": ast.parse(other)}
    assert shared_classes(trees) == {"Shared": ["a", "b"]}
    assert dead(trees) == ["a:unused"]


def test_the_check_of_copies_sees_eight_equal_lines() -> None:
    lines = [f"value_{n} = {n}" for n in range(9)]
    text = "\n".join(["import os", *lines])
    moved = "\n".join(["if True:", *(f"    {line}" for line in lines[:8])])
    assert len(runs(text) & runs(moved)) == 1
    assert not runs(text) & runs("\n".join(lines[:7]))
    assert too_many({("a", "b"): 2}, {("a", "b"): 1}) and too_many({}, {("a", "b"): 1})
    assert not too_many({("a", "b"): 1}, {("a", "b"): 1})
