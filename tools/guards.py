"""Guards of a move: everything others rely on, written down once and compared afterwards.

    python -m tools.guards write          take a snapshot into tools/guards.json
    python -m tools.guards compare        take another and say what is lost or otherwise
    python -m tools.guards compare --only cli,openapi

What is lost or changed fails; what is new is counted and does not.  Two tables say what is meant:
`tools/renames.toml` (classes and modules, as far as they are renamed in this tree) and
`tools/guards_map.toml` (everything else; see there).
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.guards_source import dotted_strings, environment, exit_codes, labels, metrics, mutants
from tools.guards_taken import (
    collected,
    command_line,
    entry_points,
    exits,
    openapi,
    python_names,
    seatunnel_texts,
    wheel,
)
from tools.rename_left import defined
from tools.rename_table import exists, read_table, today
from tools.rename_text import Words, replace_words

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tools" / "guards.json"
MAP = ROOT / "tools" / "guards_map.toml"
SHOWN = 25

Items = dict[str, Any]
"""What one guard watches: key -> what is said of it."""

GUARDS = {
    "python": python_names,
    "entry_points": entry_points,
    "cli": command_line,
    "openapi": openapi,
    "metrics": metrics,
    "exit_codes": exit_codes,
    "exits": exits,
    "environment": environment,
    "labels": labels,
    "seatunnel_texts": seatunnel_texts,
    "mutants": mutants,
    "dotted_strings": dotted_strings,
    "wheel": wheel,
    "tests": collected,
}
MOVED = ("python", "entry_points", "openapi", "labels", "mutants", "wheel", "tests")
"""Guards whose keys and values name modules or classes of ours."""

STRICT = ("dotted_strings",)
"""Guards that list what is wrong: here something new fails."""


def take(names: Sequence[str]) -> dict[str, Items]:
    """Take a snapshot."""
    found = {}
    for name in names:
        found[name] = json.loads(json.dumps(GUARDS[name](ROOT)))  # as it will be read back
        print(f"  {name}: {len(found[name])}", flush=True)
    return found


class Meant:
    """What was changed on purpose."""

    def __init__(self, tables: Mapping[str, Any], modules: Words, names: Mapping[str, str]) -> None:
        self._tables = tables
        self._modules = modules
        self._names = names

    def apply(self, guard: str, items: Items) -> Items:
        """Return what a former snapshot says, in today's words."""
        table = self._tables.get(guard, {})
        gone = set(table.get("gone", {}))
        return {
            self._text(guard, key, table): self._value(guard, value, table)
            for key, value in items.items()
            if key not in gone and not any(key.startswith(g[:-1]) for g in gone if g[-1] == "*")
        }

    def _value(self, guard: str, value: Any, table: Mapping[str, Any]) -> Any:
        if isinstance(value, str):
            return self._text(guard, value, table)
        if isinstance(value, list):
            return [self._value(guard, each, table) for each in value]
        if isinstance(value, dict):
            return {
                self._text(guard, k, table): self._value(guard, v, table) for k, v in value.items()
            }
        return value

    def _text(self, guard: str, text: str, table: Mapping[str, Any]) -> str:
        if text in table.get("renamed", {}):
            return str(table["renamed"][text])
        if guard in MOVED:
            text = self._modules.replace(text)
            text = replace_words(text, self._names)
        return replace_words(text, table.get("words", {}))


def meant() -> Meant:
    """Read both tables, as far as this tree has been changed."""
    table = read_table(ROOT)
    goals: dict[str, str] = {}
    names: dict[str, str] = {}
    before = json.loads(FILE.read_text())["modules"] if FILE.is_file() else []
    for module in before:
        now = today(module, table, ROOT)
        if now != module and exists(now, ROOT):
            goals[module] = now
    files = {old: new for step in table.steps for old, new in step.files.items()}
    for old, new in files.items():
        if (ROOT / new).exists() and old.endswith(".py"):
            goals[_dotted(old)] = _dotted(new)
    for step in table.steps:
        for key, new in step.names.items():
            module, _, old = key.partition(":")
            if new in defined(today(module, table, ROOT), ROOT):
                names.setdefault(old, new)
    tables = tomllib.loads(MAP.read_text()) if MAP.is_file() else {}
    return Meant(tables, Words(goals), names)


def _dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def compare(before: Mapping[str, Items], now: Mapping[str, Items], known: Meant) -> list[str]:
    """Return what is lost or changed, and count what is new."""
    wrong = []
    for guard, items in now.items():
        old = known.apply(guard, before.get(guard, {}))
        lost = [f"{guard}: LOST {key}" for key in old if key not in items]
        changed = [
            f"{guard}: CHANGED {key}\n    was {_short(old[key])}\n    is  {_short(items[key])}"
            for key in old
            if key in items and not _same(old[key], items[key])
        ]
        new = [f"{guard}: NEW {key}" for key in items if key not in old]
        print(f"{guard}: {len(lost)} lost, {len(changed)} changed, {len(new)} new, of {len(old)}.")
        wrong += new if guard in STRICT else [*lost, *changed]
    return wrong


def _same(old: Any, new: Any) -> bool:
    """Whether nothing is lost: a count may grow, all else must be equal."""
    if isinstance(old, int) and isinstance(new, int) and not isinstance(old, bool):
        return new >= old
    return bool(old == new)


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) < 300 else text[:300] + "..."


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare; return 0 if nothing is lost."""
    parser = argparse.ArgumentParser(prog="python -m tools.guards")
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("--only", default=",".join(GUARDS), help="some guards, by commas")
    given = parser.parse_args(arguments)
    names = [name for name in GUARDS if name in given.only.split(",")]
    if given.what == "write":
        kept = json.loads(FILE.read_text()) if FILE.is_file() else {}
        kept.setdefault("modules", _modules())
        kept.update(take(names))
        rows = []
        for name, items in kept.items():
            rows.append(f"{json.dumps(name)}: {json.dumps(items, indent=0, sort_keys=True)}")
        FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
        return 0
    before = json.loads(FILE.read_text())
    wrong = compare(before, take(names), meant())
    for line in wrong[:SHOWN]:
        print(line)
    print(f"{len(wrong)} things are lost or changed." if wrong else "Nothing is lost.")
    return 1 if wrong else 0


def _modules() -> list[str]:
    tops = ("holdfast", "tests", "benchmarks", "examples")
    paths = [
        p for top in tops for p in sorted((ROOT / top).rglob("*.py")) if ".peers" not in p.parts
    ]
    return [_dotted(str(p.relative_to(ROOT))).removesuffix(".__init__") for p in paths]


if __name__ == "__main__":
    sys.exit(main())
