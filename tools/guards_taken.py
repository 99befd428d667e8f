"""Guards that ask the product itself: what it exports, prints, serves and ships."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import typer

import holdfast
from holdfast.api.table import all_routes, document
from holdfast.cli.main import build
from holdfast.connect import plugin, rows, sink, source, transform
from tools.rename_table import python_files

CONTRACT: tuple[ModuleType, ...] = (plugin, sink, source, rows, transform)
QUALIFIED = re.compile(r"holdfast(?:\.\w+)*\.(?=\w)")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
TYPED = {
    "nothing": [],
    "version": ["--version"],
    "no such verb": ["nonsense"],
    "no such file": ["check", "/nowhere/job.conf"],
    "no file given": ["run"],
    "a flag of another program": ["--decrypt"],
    "a verb of the cluster, no cluster": ["list", "--masters", "http://127.0.0.1:9"],
}
SEATUNNEL = ("v2_", "seatunnel", "closing", "terminal", "launch")
"""What files are called in which SeaTunnel's users read our words; as a part of their path."""


def python_names(root: Path) -> dict[str, Any]:
    """Return the promised names and the contract for plug-ins, each with its signature."""
    found = {f"holdfast.{name}": _shape(getattr(holdfast, name)) for name in holdfast.__all__}
    for module in CONTRACT:
        for name, value in vars(module).items():
            if getattr(value, "__module__", "") != module.__name__ or name.startswith("_"):
                continue
            found[f"contract.{name}"] = _shape(value)
            if inspect.isclass(value):
                for member, of in vars(value).items():
                    if not member.startswith("_"):
                        found[f"contract.{name}.{member}"] = _shape(of)
    return found


def _shape(value: object) -> str:
    if isinstance(value, property):
        return "property"
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    if not callable(value):
        return QUALIFIED.sub("", ADDRESS.sub("", repr(value)))
    try:
        signature = str(inspect.signature(value))
    except ValueError:
        signature = "(?)"
    return QUALIFIED.sub("", ADDRESS.sub("", signature))


def entry_points(root: Path) -> dict[str, Any]:
    """Return the entry points of the package, and the console command."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    found = {f"scripts.{k}": v for k, v in project["scripts"].items()}
    for group, points in project["entry-points"].items():
        found |= {f"{group}.{k}": v for k, v in points.items()}
    for extra in project["optional-dependencies"]:
        found[f"extra.{extra}"] = "there"
    for target in found.values():
        module, _, name = target.partition(":")
        if "." in module and name:
            getattr(importlib.import_module(module), name)
    return found


def command_line(root: Path) -> dict[str, Any]:
    """Return every verb with its arguments and options: names, kind, default, help."""
    tree: Any = typer.main.get_command(build([]))
    found: dict[str, Any] = {}
    for verb, command in sorted(tree.commands.items()):
        found[verb] = inspect.cleandoc(command.help or "").split("\n")[0]
        for one in command.params:
            default = one.default if not callable(one.default) else "computed"
            found[f"{verb} {'/'.join([*one.opts, *one.secondary_opts])}"] = {
                "kind": one.param_type_name,
                "type": _type_name(one),
                "default": repr(default),
                "required": one.required,
                "many": one.multiple or one.nargs != 1,
                "environment": str(getattr(one, "envvar", None)),
                "help": str(getattr(one, "help", "")),
            }
    return found


def _type_name(parameter: Any) -> str:
    """Return what kind of value a parameter takes, with its choices."""
    kind = getattr(parameter, "type", None)
    choices = getattr(kind, "choices", None)
    return (
        f"{getattr(kind, 'name', kind)} {list(choices)}"
        if choices
        else str(getattr(kind, "name", kind))
    )


def openapi(root: Path) -> dict[str, Any]:
    """Return every operation and shape of the API, without what they say in words."""
    nobody = cast(Any, None)
    made = document(all_routes(nobody, nobody, nobody, nobody))
    found: dict[str, Any] = {}
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            found[f"{method.upper()} {path}"] = _wordless(operation)
    for name, schema in made["components"]["schemas"].items():
        found[f"schema {name}"] = _wordless(schema)
    return found


def _wordless(value: Any) -> Any:
    if isinstance(value, list):
        return [_wordless(each) for each in value]
    if not isinstance(value, dict):
        return value
    words = ("description", "summary", "title")
    return {k: _wordless(v) for k, v in value.items() if k not in words or isinstance(v, dict)}


def exits(root: Path) -> dict[str, Any]:
    """Return what the command ends with for mistakes that need no cluster and no Spark."""
    found = {}
    for about, words in TYPED.items():
        command = [sys.executable, "-m", "holdfast", *words]
        done = subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=300)
        found[about] = f"exit {done.returncode}"
    return found


def seatunnel_texts(root: Path) -> dict[str, Any]:
    """Return the texts in files that SeaTunnel's users read: so many times each."""
    found: Counter[str] = Counter()
    for path in python_files(root):
        parts = path.relative_to(root).parts
        if parts[0] != "holdfast" or not any(s in part for s in SEATUNNEL for part in parts):
            continue
        tree = ast.parse(path.read_text())
        said = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in said else ""
            if isinstance(text, str) and text.strip():
                found[text] += 1
    return dict(found)


def wheel(root: Path) -> dict[str, Any]:
    """Return the files of the wheel."""
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as folder:
        command = [uv, "build", "--quiet", "--wheel", "--offline", "--out-dir", folder, str(root)]
        subprocess.run([str(word) for word in command], check=True)
        (made,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(made) as file:
            return {re.sub(r"-[\d.]+\.dist-info", ".dist-info", n): "" for n in file.namelist()}


def collected(root: Path) -> dict[str, Any]:
    """Return the tests that pytest finds, each with how many sets of parameters it has."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "",
               "-p", "no:cacheprovider"]  # fmt: skip
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"pytest --collect-only ended with {done.returncode}:\n{done.stdout[-3000:]}"
        )
    ids = (line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line)
    return dict(Counter(ids))
