"""The page that says which windows are covered, and how."""

from tests.chaos.engine import catalogue as chaos
from tests.chaos.engine.scene import SCENARIOS as STRUCK
from tests.sim.scenarios.catalogue import scenarios_of, simulated
from tests.sim.scenarios.run import SEEDS
from tests.sim.scenarios.windows import GROUPS, NOT_YET, WINDOWS, Window

assert chaos, "importing it adds its scenarios to STRUCK"

STORES = ("sqlite", "etcd", "postgres")

HEAD = """# Reliability: the fault windows

*Written by `python -m tests.sim.scenarios --write docs/reliability.md`; a test fails
when it is stale.*

A window is an exact moment in which a fault could make Holdfast break its promise.

*Simulated*: the master's real code plays the window against a simulated store, network, blob
store, tables and workers. A play counts only if the history shows that the window was hit, no
invariant is violated, and the expected result is there. `tests/sim/test_scenarios.py` plays
each window with every seed. To run one: `python -m tests.sim.scenarios E13`.

*Real processes*: a scenario hits the window on real masters and workers, with Spark and kill -9, on
these stores ([how](chaos.md)); the same checks judge it. If it runs with several kinds of sinks,
their number is given. To run one: `make chaos STORE=etcd ONLY=E03`.

A star marks a window from the documents that this project started from.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, _counts(), *(_group(letter) for letter in GROUPS), _others()])


def _counts() -> str:
    known = set(simulated())
    plays = sum(len(scenarios_of(w)) for w in known) * len(SEEDS)
    rows = [
        ("all", list(WINDOWS)),
        ("from the starting documents", [w for w in WINDOWS if w.seed]),
        *((name, _of(letter)) for letter, name in GROUPS.items()),
    ]
    lines = [f"| windows | known | simulated | {' | '.join(STORES)} |"]
    lines += ["| --- | --- | --- |" + " --- |" * len(STORES)]
    for name, windows in rows:
        done = len([w for w in windows if w.id in known])
        real = [str(len([w for w in windows if store in _stores(w.id)])) for store in STORES]
        lines.append(f"| {name} | {len(windows)} | {done} | {' | '.join(real)} |")
    lines += ["", f"{plays} plays: every scenario with each of {len(SEEDS)} seeds."]
    lines += [f"{len(STRUCK)} scenarios on real processes, for each store that they are for."]
    return "\n".join(lines) + "\n"


def _of(letter: str) -> list[Window]:
    return [w for w in WINDOWS if w.group == letter]


def _group(letter: str) -> str:
    lines = [f"## {letter}: {GROUPS[letter]}", ""]
    lines += ["| id | point | fault | expected | simulated | real processes |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for window in _of(letter):
        star = " \\*" if window.seed else ""
        lines.append(
            f"| {window.id}{star} | {window.point} | {window.fault} | {window.expected} |"
            f" {_simulated(window)} | {_real(window.id)} |"
        )
    return "\n".join(lines) + "\n"


def _simulated(window: Window) -> str:
    if window.id in NOT_YET:
        return f"not yet: {NOT_YET[window.id]}"
    return "yes" if scenarios_of(window.id) else "not yet"


def _real(window: str) -> str:
    """Say where a window is struck on real processes, and with how many kinds of sinks."""
    sinks = {s.sink for s in STRUCK if s.window == window and s.sink}
    said = [*_stores(window), *([f"{len(sinks)} sinks"] if sinks else [])]
    return ", ".join(said) or "no"


def _stores(window: str) -> list[str]:
    """Return the stores for which a window is struck on real processes."""
    struck = {store for s in STRUCK if s.window == window for store in s.stores}
    return [store for store in STORES if store in struck]


def _others() -> str:
    """What is struck on real processes and stands for no window of the catalogue."""
    known = {w.id for w in WINDOWS}
    extra = sorted((s for s in STRUCK if s.window not in known), key=lambda s: s.id)
    lines = ["## Beyond the catalogue: only on real processes", ""]
    lines += ["| id | what is done | real processes |", "| --- | --- | --- |"]
    lines += [f"| {s.window} | {s.name.replace('_', ' ')} | {', '.join(s.stores)} |" for s in extra]
    return "\n".join(lines) + "\n"
