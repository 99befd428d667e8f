"""What the table of renames has not brought about yet, and where it is wrong."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.rename_table import Table, exists, file_of, moved, python_files, today

SHOWN = 40


def check(root: Path, table: Table, documents: Iterable[Path]) -> int:
    """Print what is pending and what is wrong; return 0 if nothing is either."""
    wrong = [*stale_moves(root, table), *stale_names(root, table)]
    pending = [*pending_moves(root, table), *pending_names(root, table)]
    left = list(left_over(root, table, [*documents, *python_files(root)]))
    for about, found in (("WRONG", wrong), ("LEFT OVER", left), ("PENDING", pending)):
        print(f"{about}: {len(found)}")
        print("".join(f"  {line}\n" for line in found[:SHOWN]), end="")
        if len(found) > SHOWN:
            print(f"  and {len(found) - SHOWN} more")
    for what, rows in (("MERGE", table.merges), ("SPLIT", table.splits)):
        undone = [f"{name} <- {', '.join(parts)}" for name, parts in rows.items()]
        print(f"{what} by hand: {len(undone)} rows in the table")
    return 1 if wrong or left or pending else 0


def stale_moves(root: Path, table: Table) -> Iterator[str]:
    """Rows whose module is neither where it was nor where any later row put it."""
    for place, step in enumerate(table.steps):
        for old, new in step.moves.items():
            goal = new
            for later in table.steps[place + 1 :]:
                goal = moved(goal, later.moves)
            first = _before(old, table, place)
            if not any(exists(name, root) for name in (old, new, goal, first)):
                yield f"{step.name}: there is no module {old}, and no {new}"
        for file in step.files:
            if not (root / file).exists() and not (root / step.files[file]).exists():
                yield f"{step.name}: there is no file {file}"


def _before(name: str, table: Table, place: int) -> str:
    """Return what a module that a step names was called before the first step."""
    for step in reversed(table.steps[:place]):
        back = {new: old for old, new in step.moves.items()}
        name = moved(name, back)
    return name


def stale_names(root: Path, table: Table) -> Iterator[str]:
    """Rows whose name is in its module neither as it was nor as it should be."""
    for step in table.steps:
        for key, new in step.names.items():
            module, _, old = key.partition(":")
            if not {old, new} & defined(today(module, table, root), root):
                yield f"{step.name}: {module} defines neither {old} nor {new}"


def pending_moves(root: Path, table: Table) -> Iterator[str]:
    """Rows whose module is still where it was."""
    for step in table.steps:
        for old, new in step.moves.items():
            if exists(old, root):
                yield f"{step.name}: {old} -> {new}"
        for file, goal in step.files.items():
            if (root / file).exists():
                yield f"{step.name}: {file} -> {goal}"


def pending_names(root: Path, table: Table) -> Iterator[str]:
    """Rows whose name is still the old one."""
    for step in table.steps:
        for key, new in step.names.items():
            module, _, old = key.partition(":")
            if old in defined(today(module, table, root), root):
                yield f"{step.name}: {key} -> {new}"


def defined(module: str, root: Path) -> set[str]:
    """Return what a module defines at its top."""
    for package in (False, True):
        path = file_of(module, root, package=package)
        if path.is_file():
            break
    else:
        return set()
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def left_over(root: Path, table: Table, paths: Iterable[Path]) -> Iterator[str]:
    """Places that still name a module which has moved."""
    gone = {
        old
        for step in table.steps
        for old in step.moves
        if old.startswith("holdfast.") and not exists(old, root)
    }
    if not gone:
        return
    spelled = sorted(gone | {old.replace(".", "/") for old in gone}, key=len, reverse=True)
    pattern = re.compile(rf"(?<![\w.~-])(?<!\w/)(?:{'|'.join(map(re.escape, spelled))})(?![\w-])")
    for path in paths:
        name = str(path.relative_to(root))
        if name.startswith(("tools/rename", "tools/guards", "docs/decisions/0050")):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if found := pattern.search(line):
                yield f"{name}:{number}: {found[0]}"
