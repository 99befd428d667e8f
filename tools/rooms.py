"""How large the rooms are, and which files break the four rules of size.

    python -m tools.rooms                 a table of rooms, and what breaks each rule
    python -m tools.rooms --markdown      the table alone, for a document
    python -m tools.rooms --freeze        write today's breaches into tests/tidy_exceptions.toml
    python -m tools.rooms --check         fail for breaches that are not in that file, and for rows
                                          of it that are not needed any more

Code lines are lines with code: no blank line, comment, docstring or import counts.
"""

import argparse
import ast
import io
import statistics
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeGuard

from holdfast import LATE
from holdfast.cli.main import VERBS
from tools.rename_code import imports_of
from tools.rename_table import dotted, python_files

ROOT = Path(__file__).parents[1]
EXCEPTIONS = ROOT / "tests" / "tidy_exceptions.toml"
CODE_LINES_MAX = 350
FUNCTION_LINES_MAX = 60
SHRED_LINES = 80
PUBLIC_NAMES_MAX = 8
"""A family counts once, whatever else the module has: the events and records of one machine, the
messages of a protocol, checks that a table runs."""

PLUGINS = ("Source", "Sink", "Transform")
EMPTY = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


@dataclass(frozen=True)
class Module:
    """A file and its figures."""

    name: str
    lines: int
    code: int
    functions: dict[str, int]
    public: tuple[str, ...]
    concepts: int
    plugin: bool
    skips: int
    package: bool
    entry: bool = False

    @property
    def room(self) -> str:
        """The package below the root; within connectors and testing, the one below that."""
        parts = self.name.split(".")[1:]
        if len(parts) < 2:
            return parts[0] if parts and self.package else "(files)"
        if parts[0] not in ("connectors", "testing"):
            return parts[0]
        return ".".join(parts[:2]) if self.package or len(parts) > 2 else f"{parts[0]} (files)"


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines that have code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in EMPTY:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)) or _said(node):
            found.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _said(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Whether this is a docstring, of whatever stands before it or around it."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def measure(path: Path) -> Module:
    """Return the figures of a file."""
    text = path.read_text()
    tree, lines = ast.parse(text), code_lines(text)
    functions = {
        node.name: (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    top = [
        node
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and not node.name.startswith("_")
    ]
    kinds = Counter(map(_kind, top))
    bases = {
        ast.unparse(b).partition("[")[0]
        for node in top
        if isinstance(node, ast.ClassDef)
        for b in node.bases
    }
    return Module(
        dotted(path, ROOT),
        text.count("\n"),
        len(lines),
        functions,
        tuple(node.name for node in top),
        len(top) - max(kinds.values(), default=1) + 1,
        bool(bases & set(PLUGINS)),
        text.count("# fmt: skip"),
        path.name == "__init__.py",
        dotted(path, ROOT) in entry_points(),
    )


@cache
def entry_points() -> frozenset[str]:
    """Return the modules that are loaded by name: commands, verbs, what `import holdfast` has."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    commands = (script.partition(":")[0] for script in scripts.values())
    verbs = (f"holdfast.cli.{module}" for module in VERBS.values())
    return frozenset({*commands, *verbs, *LATE.values()})


def _kind(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    """What makes two names of one kind: bases and decorators of classes, types of functions."""
    if isinstance(node, ast.ClassDef):
        decorators = [ast.unparse(d).partition("(")[0] for d in node.decorator_list]
        return ("class", *map(ast.unparse, node.bases), *decorators)
    return ("def", ast.unparse(node.args), ast.unparse(node.returns) if node.returns else "")


def production() -> list[Module]:
    """Return the files of the package."""
    paths = [p for p in python_files(ROOT) if p.relative_to(ROOT).parts[0] == "holdfast"]
    return [measure(path) for path in paths]


def importers(names: Iterable[str]) -> dict[str, set[str]]:
    """Return which files of the package import each of its modules."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for path in python_files(ROOT):
        here = dotted(path, ROOT)
        if here in found:
            for module, name, _ in imports_of(ast.parse(path.read_text())):
                for target in (f"{module}.{name}", module):
                    if target in found and target != here:
                        found[target].add(here)
                        break
    return found


def breaches(modules: Sequence[Module]) -> dict[str, dict[str, str]]:
    """Return what breaks the rules: rule -> file -> how."""
    used = importers(m.name for m in modules)
    found: dict[str, dict[str, str]] = {"upper": {}, "function": {}, "lower": {}, "concept": {}}
    for one in modules:
        if one.code > CODE_LINES_MAX:
            found["upper"][one.name] = f"{one.code} code lines"
        for name, lines in one.functions.items():
            if lines > FUNCTION_LINES_MAX:
                found["function"][f"{one.name}:{name}"] = f"{lines} lines"
        alone = len(used[one.name]) == 1 and not one.plugin
        if one.code < SHRED_LINES and alone and one.public and not one.entry:
            (by,) = used[one.name]
            found["lower"][one.name] = f"{one.code} code lines, used by {by}"
        if one.concepts > PUBLIC_NAMES_MAX:
            found["concept"][one.name] = f"{len(one.public)} public names, too few of one kind"
    return found


def table(modules: Sequence[Module]) -> list[str]:
    """Return a table of rooms: files, lines, code lines, median, what is skipped."""
    rooms: dict[str, list[Module]] = {}
    for one in modules:
        rooms.setdefault(one.room, []).append(one)
    kit = [m for m in modules if m.name.startswith("holdfast.testing")]
    rest = [m for m in modules if m not in kit]
    return [
        "| room | files | lines | code lines | median | largest | fmt: skip |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_row(name, own) for name, own in sorted(rooms.items())),
        _row("**production**", rest),
        _row("**testing**", kit),
    ]


def _row(name: str, own: Sequence[Module]) -> str:
    lines = [m.lines for m in own] or [0]
    code, skips = sum(m.code for m in own), sum(m.skips for m in own)
    return (
        f"| {name} | {len(own)} | {sum(lines):,} | {code:,} | {statistics.median(lines):.0f}"
        f" | {max(lines)} | {skips} |"
    )


def skips() -> dict[str, int]:
    """Return how many lines are kept from the formatter, by the folder at the top."""
    found: dict[str, int] = {}
    for path in python_files(ROOT):
        top = path.relative_to(ROOT).parts[0]
        count = sum(line.endswith("# fmt: skip") for line in path.read_text().splitlines())
        found[top] = found.get(top, 0) + count
    return found


def freeze(found: dict[str, dict[str, str]]) -> None:
    """Write today's breaches as exceptions."""
    lines = [
        "# Files that break a rule of size, and why they may.  `python -m tools.rooms --check`",
        "# fails for a breach that is not here, and for a row that is not needed any more.",
    ]
    for rule, rows in found.items():
        lines += ["", f"[{rule}]"]
        lines += [f'"{name}" = "before the first move: {how}"' for name, how in rows.items()]
    EXCEPTIONS.write_text("\n".join(lines) + "\n")


def check(found: dict[str, dict[str, str]]) -> list[str]:
    """Return breaches that are not excepted, and exceptions that nothing needs."""
    known = tomllib.loads(EXCEPTIONS.read_text()) if EXCEPTIONS.is_file() else {}
    wrong = []
    for rule, rows in found.items():
        excepted = known.get(rule, {})
        wrong += [f"{rule}: {name}: {how}" for name, how in rows.items() if name not in excepted]
        wrong += [
            f"{rule}: {name} needs no exception any more: take its row out of {EXCEPTIONS.name}"
            for name in excepted
            if name not in rows
        ]
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Report, freeze or check."""
    parser = argparse.ArgumentParser(prog="python -m tools.rooms")
    parser.add_argument("--markdown", action="store_true", help="the table of rooms alone")
    parser.add_argument("--freeze", action="store_true", help="write today's breaches down")
    parser.add_argument("--check", action="store_true", help="fail for breaches not written down")
    given = parser.parse_args(arguments)
    modules = production()
    if given.markdown:
        print("\n".join(table(modules)))
        return 0
    found = breaches(modules)
    if given.freeze:
        freeze(found)
        return 0
    if given.check:
        wrong = check(found)
        print("\n".join(wrong) or "Every file keeps the rules of size, or is excepted.")
        return 1 if wrong else 0
    print("\n".join(table(modules)))
    for rule, rows in found.items():
        print(f"\n{rule}: {len(rows)}")
        print("".join(f"  {name}: {how}\n" for name, how in sorted(rows.items())), end="")
    counts = skips()
    print(f"\nfmt: skip: {sum(counts.values())} ({counts})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
