"""Move modules and rename what is in them, as `tools/renames.toml` says.

    python -m tools.rename steps                list the steps
    python -m tools.rename apply out            run one step on this tree
    python -m tools.rename --check              what is left to do, and what is wrong with the table

A step moves files with `git mv`, rewrites imports and references by their syntax tree, and names
in strings, comments, documents and settings by their dotted or slashed spelling.  It ends by
putting imports in order.  It changes nothing else, so its commit can be reviewed by running it
again.  The tree must be clean in git before a step.
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tools.rename_code import rename_modules, rename_names, with_reexports
from tools.rename_left import check
from tools.rename_table import (
    TABLE,
    Step,
    Table,
    dotted,
    expand,
    file_of,
    moved,
    python_files,
    read_table,
    today,
)
from tools.rename_text import Words, replace_words

KEPT = (
    "uv.lock",
    "CHANGELOG.md",
    "holdfast/ui/",
    "tests/tools/",
    "tools/rename",
    "tools/guards_map.toml",
    "tools/guards.json",
    "tools/baseline.json",
    "tools/sim_digests.json",
    "docs/decisions/0050-the-house.md",
)
"""Files that speak of the old names on purpose, and files that are made by machines."""

BUGS = "tests/mutants/table.py"


def apply(root: Path, table: Table, step: Step) -> list[str]:
    """Run a step; return what it could not do as asked."""
    names = {_now(key, table, root): new for key, new in step.names.items()}
    modules = expand(root, step)
    files = {_dotted(old): _dotted(new) for old, new in step.files.items() if old.endswith(".py")}
    words = Words({**files, **modules}, names)
    folders = move(root, step, modules)
    notes = []
    for path in python_files(root):
        if skipped(path, root):
            continue
        text = path.read_text()
        outcome = rename_modules(text, words, folders.get(path, ""))
        if outcome.text != text:
            path.write_text(outcome.text)
        notes += [f"{path.relative_to(root)}: {note}" for note in outcome.notes]
    for path in documents(root):
        text = path.read_text()
        new = words.replace(text)
        if new != text:
            path.write_text(new)
    if names or step.attributes:
        notes += rename(root, step, names)
    notes += edit(root, step)
    tidy(root)
    return notes


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _now(key: str, table: Table, root: Path) -> tuple[str, str]:
    module, _, name = key.partition(":")
    return today(module, table, root), name


def move(root: Path, step: Step, modules: Mapping[str, str]) -> dict[Path, str]:
    """Move the files; return where each of them was, as a folder below `holdfast`."""
    folders = {}
    for old, new in modules.items():
        package = file_of(old, root, package=True).is_file()
        source, goal = (file_of(n, root, package=package) for n in (old, new))
        folders[goal] = str(source.parent.relative_to(root)).removeprefix("holdfast/")
        move_file(root, source, goal)
        if package:
            others = [p for p in source.parent.iterdir() if p.is_file() and p.suffix != ".py"]
            for other in sorted(others):
                move_file(root, other, goal.parent / other.name)
    for old, new in step.files.items():
        move_file(root, root / old, root / new)
    for name, about in step.packages.items():
        made = file_of(name, root, package=True)
        if not made.exists():
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text(f'"""{about}"""\n')
            git(root, "add", str(made))
    return folders


def move_file(root: Path, source: Path, goal: Path) -> None:
    """Move one file, and refuse to overwrite another."""
    if goal.exists():
        raise SystemExit(f"{source.relative_to(root)} cannot move: {goal} is there.")
    goal.parent.mkdir(parents=True, exist_ok=True)
    git(root, "mv", str(source), str(goal))


def rename(root: Path, step: Step, names: Mapping[tuple[str, str], str]) -> list[str]:
    """Rename classes, functions, constants, methods and fields."""
    paths = [p for p in python_files(root) if not skipped(p, root)]
    trees = {dotted(p, root): ast.parse(p.read_text()) for p in paths}
    every = with_reexports(names, trees)
    words, notes = Words({}, every), []
    for path in paths:
        text = path.read_text()
        module = dotted(path, root)
        attributes = {
            a.old: a.new for a in step.attributes if _within(path.relative_to(root), a.within)
        }
        outcome = rename_names(text, module, words, attributes, every)
        if outcome.text != text:
            path.write_text(outcome.text)
        notes += [f"{path.relative_to(root)}: {note}" for note in outcome.notes]
    clear = unambiguous(names, trees)
    for path in documents(root):
        text = path.read_text()
        new = words.replace(ticked(text, clear))
        if new != text:
            path.write_text(new)
    rename_bugs(root, clear)
    return notes


def ticked(text: str, clear: Mapping[str, str]) -> str:
    """Replace names in backticks in a document, where a name means just one thing."""
    parts = text.split("`")
    for place in range(1, len(parts), 2):
        head, dot, rest = parts[place].partition(".")
        bare = head.removesuffix("()")
        if bare in clear and " " not in parts[place]:
            parts[place] = clear[bare] + head[len(bare) :] + dot + rest
    return "`".join(parts)


def unambiguous(
    names: Mapping[tuple[str, str], str], trees: Mapping[str, ast.Module]
) -> dict[str, str]:
    """Return the renamed names that no other class of production has."""
    classes = [
        (module, node.name)
        for module, tree in trees.items()
        if module.startswith("holdfast")
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]
    found: dict[str, str] = {}
    for (_, old), new in names.items():
        others = [m for m, name in classes if name == old and (m, name) not in names]
        same = {n for (_, o), n in names.items() if o == old}
        if not others and len(same) == 1:
            found[old] = new
    return found


def rename_bugs(root: Path, clear: Mapping[str, str]) -> None:
    """Planted bugs quote source code: names in the quotes are renamed as in the code itself."""
    path = root / BUGS
    if path.is_file() and clear:
        head, mark, rest = path.read_text().partition("BUGS = (")
        path.write_text(head + mark + replace_words(rest, clear))


def _within(path: Path, within: Iterable[str]) -> bool:
    return any(path == Path(w) or Path(w) in path.parents for w in within)


def edit(root: Path, step: Step) -> list[str]:
    """Make the edits that no rule makes."""
    notes = []
    for change in step.text:
        path = root / moved_path(change.file, step)
        text = path.read_text()
        if text.count(change.old) != 1:
            notes.append(f"{change.file}: this stands {text.count(change.old)} times: {change.old}")
            continue
        path.write_text(text.replace(change.old, change.new))
    return notes


def moved_path(file: str, step: Step) -> str:
    """Return where a file is after the moves of a step."""
    if not file.endswith(".py"):
        return step.files.get(file, file)
    name = file.removesuffix(".py").replace("/", ".")
    return step.files.get(file, moved(name, step.moves).replace(".", "/") + ".py")


def skipped(path: Path, root: Path) -> bool:
    """Whether a file keeps the names it has."""
    return str(path.relative_to(root)).startswith(KEPT)


def documents(root: Path) -> Iterator[Path]:
    """Yield the files under git that are text and no Python."""
    listed = git(root, "ls-files", "-z").split("\0")
    for name in sorted(filter(None, listed)):
        path = root / name
        if path.suffix == ".py" or name.startswith(KEPT) or not path.is_file():
            continue
        try:
            path.read_text()
        except UnicodeDecodeError:
            continue
        yield path


def tidy(root: Path) -> None:
    """Put imports in order and lines in shape."""
    for command in (
        ["check", "--select", "I", "--fix", "--quiet", "."],
        ["format", "--quiet", "."],
    ):
        subprocess.run([sys.executable, "-m", "ruff", *command], cwd=root, check=True)
    for folder in sorted((root / "holdfast").rglob("*"), reverse=True):
        caches = folder / "__pycache__"
        if folder.is_dir() and not [p for p in folder.iterdir() if p != caches]:
            for cached in caches.glob("*.pyc"):
                cached.unlink()
            for empty in (caches, folder):
                if empty.is_dir():
                    empty.rmdir()


def git(root: Path, *arguments: str) -> str:
    """Run git in a tree; return what it prints."""
    done = subprocess.run(
        ["git", *arguments], cwd=root, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 if it did all that was asked."""
    parser = argparse.ArgumentParser(prog="python -m tools.rename")
    parser.add_argument("--check", action="store_true", help="what is left, what is wrong")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the tree; this one")
    parser.add_argument("what", nargs="?", choices=["steps", "apply"], default="steps")
    parser.add_argument("steps", nargs="*", metavar="STEP")
    given = parser.parse_args(arguments)
    root = given.root.resolve()
    table = read_table(root)
    if given.check:
        return check(root, table, list(documents(root)))
    if given.what == "steps":
        print("\n".join(step.name for step in table.steps))
        return 0
    if git(root, "status", "--porcelain", "--untracked-files=no"):
        raise SystemExit("Commit or stash first: a step must be reviewable by itself.")
    for name in given.steps:
        notes = apply(root, table, table.step(name))
        print(f"{name}: done, {len(notes)} to look at ({TABLE}).")
        print("\n".join(f"  {note}" for note in notes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
