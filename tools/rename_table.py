"""The table of moves and renames, and what it means for the tree as it is now.

`renames.toml` has steps, in the order they are run.  A step has any of:

    [steps.NAME.packages]   package -> first line of its docstring, where it has no file of its own
    [steps.NAME.moves]      dotted module or package -> where it goes; the longest row wins
    [steps.NAME.files]      path -> path, for what is no module that is imported
    [steps.NAME.names]      "module:Old" -> "New": classes, functions and constants of a module
    [[steps.NAME.attributes]]  old, new, within: methods and fields, in the named files or folders
    [[steps.NAME.text]]     file, old, new: an edit that no rule makes; `old` must stand just once

Modules are named as they were before the first step; a row follows them through the moves.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOTS = ("holdfast", "tests", "benchmarks", "examples", "tools")
LEFT_OUT = {".venv", "__pycache__", "node_modules", ".git", ".peers", ".mypy_cache", ".ruff_cache"}
TABLE = Path("tools/renames.toml")


@dataclass(frozen=True)
class Attribute:
    """A method or field with another name, in some files."""

    old: str
    new: str
    within: tuple[str, ...]


@dataclass(frozen=True)
class Edit:
    """A piece of text put in the place of another."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Step:
    """The rows of one step."""

    name: str
    packages: Mapping[str, str] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    attributes: tuple[Attribute, ...] = ()
    text: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Table:
    """All steps, and the merges and splits that are done by hand after them."""

    steps: tuple[Step, ...]
    merges: Mapping[str, list[str]]
    splits: Mapping[str, list[str]]

    def step(self, name: str) -> Step:
        """Return the step of that name."""
        for step in self.steps:
            if step.name == name:
                return step
        known = ", ".join(s.name for s in self.steps)
        raise SystemExit(f"There is no step {name} in {TABLE}. Steps: {known}.")


def read_table(root: Path) -> Table:
    """Read the table of a tree."""
    return table_of(tomllib.loads((root / TABLE).read_text()))


def table_of(rows: Mapping[str, Any]) -> Table:
    """Make a table of what its file says, and refuse what has no meaning."""
    steps = []
    for name, given in rows.get("steps", {}).items():
        unknown = set(given) - {"packages", "moves", "files", "names", "attributes", "text"}
        if unknown:
            raise SystemExit(f"{TABLE}: step {name} has {', '.join(sorted(unknown))}.")
        attributes = tuple(
            Attribute(a["old"], a["new"], tuple(a["within"])) for a in given.get("attributes", [])
        )
        text = tuple(Edit(e["file"], e["old"], e["new"]) for e in given.get("text", []))
        kinds = {k: given.get(k, {}) for k in ("packages", "moves", "files", "names")}
        steps.append(Step(name, **kinds, attributes=attributes, text=text))
    return Table(tuple(steps), rows.get("merges", {}), rows.get("splits", {}))


def modules(root: Path) -> dict[str, Path]:
    """Return every module of the tree, by its dotted name."""
    return {dotted(path, root): path for path in python_files(root)}


def python_files(root: Path) -> Iterator[Path]:
    """Yield the Python files of a tree that are ours."""
    for top in ROOTS:
        for path in sorted((root / top).rglob("*.py")):
            if not LEFT_OUT & set(path.relative_to(root).parts):
                yield path


def dotted(path: Path, root: Path) -> str:
    """Return a file's dotted name; a package's is that of its folder."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def moved(name: str, rows: Mapping[str, str]) -> str:
    """Return where a module goes: by the longest row that is it or a package around it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        head = ".".join(parts[:length])
        if head in rows:
            return ".".join([rows[head], *parts[length:]])
    return name


def expand(root: Path, step: Step) -> dict[str, str]:
    """Return the modules that a step moves, each with where it goes.

    A package moves with everything below it.  The package itself, its `__init__`, goes where its
    own row says; one that has only rows for its modules stays until it is empty.
    """
    found = {}
    for name in modules(root):
        goal = moved(name, step.moves)
        if goal != name:
            found[name] = goal
    return found


def file_of(name: str, root: Path, *, package: bool) -> Path:
    """Return the path of a module."""
    base = root.joinpath(*name.split("."))
    return base / "__init__.py" if package else base.with_suffix(".py")


def exists(name: str, root: Path) -> bool:
    """Whether there is such a module or package."""
    return any(file_of(name, root, package=p).is_file() for p in (False, True))


def today(name: str, table: Table, root: Path) -> str:
    """Return what a module of before the first step is called in this tree."""
    for step in table.steps:
        if exists(name, root):
            return name
        name = moved(name, step.moves)
    return name
