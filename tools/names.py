"""Names of production: public classes that share one, and names that nothing in production uses.

    python -m tools.names        print both

A name counts as used wherever production has it as a word: in code, in an import, in a keyword
argument, or in a text that is one word or an expression, such as an entry of a table.  So a name
that is also a common word may pass though nothing uses it; a name that is reported is used nowhere.
Connectors are found by their base class, and names with two underscores at both ends by Python.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from tools.rename_table import dotted
from tools.rooms import PLUGINS, ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef


def production() -> dict[str, ast.Module]:
    """Return the modules of the package but for the kit for tests: name -> syntax tree."""
    paths = sorted((ROOT / "holdfast").rglob("*.py"))
    kept = [p for p in paths if p.relative_to(ROOT).parts[1] != "testing"]
    return {dotted(p, ROOT): ast.parse(p.read_text()) for p in kept}


def shared_classes(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return the public classes that several modules define: name -> modules."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return {name: modules for name, modules in sorted(found.items()) if len(modules) > 1}


def dead(trees: Mapping[str, ast.Module]) -> list[str]:
    """Return the names that production defines and does not use, each as `module:name`."""
    used = Counter(name for tree in trees.values() for name in _used(tree))
    return [
        f"{module}:{name}"
        for module, tree in trees.items()
        for name in _defined(tree.body)
        if not used[name] and not (name.startswith("__") and name.endswith("__"))
    ]


def _used(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                yield name
            case ast.Attribute(attr=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.name.rpartition(".")[2] for alias in names)
            case ast.keyword(arg=str(name)):
                yield name
            case ast.MatchClass(kwd_attrs=names):
                yield from names
            case ast.Constant(value=str(text)) if _is_code(text):
                yield from re.findall(r"[A-Za-z_]\w*", text)


def _is_code(text: str) -> bool:
    """Whether a text may name something: one word, or an annotation; no sentence does."""
    if " " not in text:
        return True
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _defined(body: list[ast.stmt]) -> Iterator[str]:
    """Yield functions, classes with their methods, and constants."""
    for node in body:
        match node:
            case ast.ClassDef(name=name, bases=bases, body=inside):
                kinds = {ast.unparse(base).partition("[")[0] for base in bases}
                if not kinds & set(PLUGINS):
                    yield name
                yield from (part.name for part in inside if isinstance(part, Function))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (t.id for t in targets if isinstance(t, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def main() -> int:
    """Print what is shared and what is dead."""
    trees = production()
    for name, modules in shared_classes(trees).items():
        print(f"shared: {name}: {', '.join(modules)}")
    for name in dead(trees):
        print(f"dead: {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
