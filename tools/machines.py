"""Draw the state machines: `docs/machines.md` is made from their tables.

python -m tools.machines --write docs/machines.md
"""

import argparse
from enum import StrEnum
from pathlib import Path

from holdfast.core.checkpoint import CHECKPOINT
from holdfast.core.commit import COMMIT
from holdfast.core.completion import COMPLETION
from holdfast.core.election import ELECTION
from holdfast.core.job import JOB
from holdfast.core.machine import TransitionTable
from holdfast.core.pipeline import PIPELINE
from holdfast.core.task import TASK

MACHINES: tuple[TransitionTable, ...] = (
    ELECTION, JOB, PIPELINE, TASK, CHECKPOINT, COMPLETION, COMMIT,
)  # fmt: skip

HEAD = """# State machines

Every status in Holdfast changes along a row of a table in `holdfast/core`; any other change raises.
The diagrams are drawn from the tables: `python -m tools.machines --write
docs/machines.md`.  Below each diagram is a list of events that change nothing in a status, because
they are late, repeated, or of a former attempt.  The comments in the tables say why that is
harmless.
"""


def initial(machine: TransitionTable) -> StrEnum:
    """Return the status in which a machine begins: the first row's."""
    return machine.rows[0][0]


def statuses(machine: TransitionTable) -> list[StrEnum]:
    """Return the statuses of a machine, in the order of its table."""
    found = {s: None for row in machine.rows for s in (row[0], row[2])}
    return list(found)


def finals(machine: TransitionTable) -> list[StrEnum]:
    """Return the statuses that no row leaves."""
    left = {r[0] for r in machine.rows if r[0] is not r[2]}
    return [s for s in statuses(machine) if s not in left]


def picture(machine: TransitionTable) -> str:
    """Return a machine as a section with a Mermaid diagram."""
    moves: dict[tuple[StrEnum, StrEnum], list[str]] = {}
    ignored: dict[StrEnum, list[str]] = {}
    for old, event, new in machine.rows:
        if old is new:
            ignored.setdefault(old, []).append(event.__name__)
        else:
            moves.setdefault((old, new), []).append(event.__name__)
    lines = [f"\n## {machine.name}\n\n```mermaid\nstateDiagram-v2\n"]
    lines.append(f"    [*] --> {_name(initial(machine))}\n")
    for (old, new), events in moves.items():
        lines.append(f"    {_name(old)} --> {_name(new)}: {', '.join(events)}\n")
    lines += [f"    {_name(s)} --> [*]\n" for s in finals(machine)]
    lines.append("```\n\n| in | changes nothing |\n| --- | --- |\n")
    lines += [f"| {_name(s)} | {', '.join(events)} |\n" for s, events in ignored.items()]
    return "".join(lines)


def page() -> str:
    """Return the whole page."""
    return HEAD + "".join(picture(m) for m in MACHINES)


def _name(status: StrEnum) -> str:
    return status.name


def main() -> None:
    """Write the page, or print it."""
    parser = argparse.ArgumentParser(description="Draw the state machines.")
    parser.add_argument("--write", type=Path, help="the file to write; printed if left out")
    path: Path | None = parser.parse_args().write
    if path:
        path.write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
