"""Keep the digests of simulated histories, and compare with them after the code was moved.

    python -m tools.digests write --seeds 500
    python -m tools.digests compare

Each seed has two digests.  `all` covers every fact of the history.  `shape` leaves out sentences
(a text with a blank in it), so that it still holds when an error is worded differently.  Records
and the content of checkpoints are hashed field by field, without the names of their classes.

A rename changes labels, kinds and record names on purpose.  `tools/guards_map.toml` names them
under `[digests.values]` and `[digests.keys]`, each new name to its old one; a history is read back
through that table before it is hashed.  A table whose old name is also in use would hide a change,
so `compare` refuses one that maps two names to the same old name.
"""

import argparse
import dataclasses
import hashlib
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.sim.engine.run import run_seed
from tests.sim.engine.swarm import spread

HERE = Path(__file__).parent
FILE = HERE / "sim_digests.json"
MAP = HERE / "guards_map.toml"
BATCH = 10
SHOWN = 10
LENGTH = 32
"""Characters of a digest that are kept: 128 bits tell histories apart."""

Names = Mapping[str, Mapping[str, str]]
Digests = dict[str, tuple[str, str]]


def digests(events: Sequence[Mapping[str, Any]], names: Names) -> tuple[str, str]:
    """Return the two digests of a history: of all of it, and of its shape."""
    every, shape = hashlib.sha256(), hashlib.sha256()
    for event in events:
        known = json.loads(json.dumps(event, default=_plain))
        for digest, sentences in ((every, True), (shape, False)):
            read = _read(known, names, sentences=sentences)
            digest.update(json.dumps(read, sort_keys=True).encode() + b"\n")
    return every.hexdigest()[:LENGTH], shape.hexdigest()[:LENGTH]


def _plain(value: Any) -> Any:
    """Return what a record is made of, as JSON can say it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, bytes):
        return value.decode()
    raise TypeError(f"A history holds a {type(value).__name__}, which has no plain form.")


def _read(value: Any, names: Names, *, sentences: bool) -> Any:
    """Return a value under its old names, with or without its sentences."""
    if isinstance(value, dict):
        keys = names.get("keys", {})
        return {keys.get(k, k): _read(v, names, sentences=sentences) for k, v in value.items()}
    if isinstance(value, list):
        return [_read(each, names, sentences=sentences) for each in value]
    if not isinstance(value, str):
        return value
    if "\n{" in value:  # a checkpoint: its length, its checksum, and what it holds as JSON
        return _read(json.loads(value.partition("\n")[2]), names, sentences=sentences)
    if " " in value and not sentences:
        return "..."
    return names.get("values", {}).get(value, value)


def run_some(names: Names, seeds: Sequence[int]) -> Digests:
    """Run some seeds; return the digests of each."""
    return {str(s): digests(run_seed(s).world.history.events, names) for s in seeds}


def run_all(first: int, count: int, names: Names) -> Digests:
    """Run seeds on all cores; return the digests of each."""
    numbers = list(range(first, first + count))
    parts = [numbers[i : i + BATCH] for i in range(0, count, BATCH)]
    found: Digests = {}
    for some in spread(partial(run_some, names), parts):
        found.update(some)
    return {str(n): found[str(n)] for n in numbers}


def read_names() -> Names:
    """Return the names that were changed on purpose: new to old, for keys and for values."""
    tables = tomllib.loads(MAP.read_text()).get("digests", {}) if MAP.is_file() else {}
    for what, table in tables.items():
        twice = {old for old in table.values() if list(table.values()).count(old) > 1}
        if twice:
            raise SystemExit(f"{MAP}: [digests.{what}] maps two names to {', '.join(twice)}.")
    return tables


def compare(kept: Mapping[str, Sequence[str]], now: Digests) -> list[str]:
    """Return what differs, a line for each kind of digest."""
    found = []
    for place, kind in enumerate(("all", "shape")):
        differ = [seed for seed in now if kept[seed][place] != now[seed][place]]
        if differ:
            shown = ", ".join(differ[:SHOWN])
            found.append(f"{kind}: {len(differ)} of {len(now)} seeds differ, such as {shown}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare; return 0 if the shape of every history is the same."""
    parser = argparse.ArgumentParser(prog="python -m tools.digests", description=__doc__)
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("--seeds", type=int, default=500, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--wording", action="store_true", help="sentences must be the same too")
    given = parser.parse_args(arguments)
    if given.what == "write":
        made = run_all(given.first, given.seeds, {})
        rows = ",\n".join(f'"{seed}": {json.dumps(pair)}' for seed, pair in made.items())
        FILE.write_text("{\n" + rows + "\n}\n")
        print(f"{len(made)} seeds written to {FILE.name}.")
        return 0
    kept = json.loads(FILE.read_text())
    wanted = [s for s in range(given.first, given.first + given.seeds) if str(s) in kept]
    now = run_all(given.first, len(wanted), read_names())
    differ = compare(kept, now)
    print("\n".join(differ) or f"{len(now)} seeds have the same histories, sentences included.")
    return 1 if any(given.wording or line.startswith("shape") for line in differ) else 0


if __name__ == "__main__":
    sys.exit(main())
