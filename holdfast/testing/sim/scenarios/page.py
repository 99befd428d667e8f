"""The page that says which windows are covered, and how."""

from holdfast.testing.sim.scenarios.catalogue import scenarios_of, simulated
from holdfast.testing.sim.scenarios.run import SEEDS
from holdfast.testing.sim.scenarios.windows import GROUPS, NOT_YET, WINDOWS, Window

HEAD = """# Reliability: the fault windows

*Written by `python -m holdfast.testing.sim.scenarios --write docs/reliability.md`; a test fails
when it is stale.*

A window is an exact moment in which a fault could make Holdfast break its promise. Each one that
is marked *simulated* is played by the master's real code against a simulated store, network, blob
store, tables and workers. A play counts only if the history proves that the window was hit, no
invariant is violated, and what the window promises holds. `tests/sim/test_scenarios.py` plays
each of them with every seed. Run one by hand: `python -m holdfast.testing.sim.scenarios E13`.
A star marks a window from the documents that this project started from.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([HEAD, _counts(), *(_group(letter) for letter in GROUPS)])


def _counts() -> str:
    known = set(simulated())
    seeds = [w for w in WINDOWS if w.seed]
    plays = sum(len(scenarios_of(w)) for w in known) * len(SEEDS)
    rows = [
        ("all", len(WINDOWS), len(known)),
        ("from the starting documents", len(seeds), len([w for w in seeds if w.id in known])),
        *(
            (name, len(_of(letter)), len([w for w in _of(letter) if w.id in known]))
            for letter, name in GROUPS.items()
        ),
    ]
    lines = ["| windows | known | simulated | real processes |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {count} | {done} | 0 |" for name, count, done in rows]
    lines += ["", f"{plays} plays: every scenario with each of {len(SEEDS)} seeds."]
    return "\n".join(lines) + "\n"


def _of(letter: str) -> list[Window]:
    return [w for w in WINDOWS if w.group == letter]


def _group(letter: str) -> str:
    lines = [f"## {letter}: {GROUPS[letter]}", ""]
    lines += ["| id | point | fault | expected | covered |", "| --- | --- | --- | --- | --- |"]
    for window in _of(letter):
        star = " \\*" if window.seed else ""
        lines.append(
            f"| {window.id}{star} | {window.point} | {window.fault} | {window.expected} |"
            f" {_covered(window)} |"
        )
    return "\n".join(lines) + "\n"


def _covered(window: Window) -> str:
    if window.id in NOT_YET:
        return f"not yet: {NOT_YET[window.id]}"
    return "simulated" if scenarios_of(window.id) else "not yet"
