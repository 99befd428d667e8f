"""What happened, in order: what the oracle reads, and what a failing seed prints.

Events are plain dictionaries with a time, a process and a kind, the same that real processes write
as JSON lines, so that the same oracle can read both.
"""

import hashlib
import json
from typing import Any

_UNTOLD = ("at", "process", "kind", "record", "guards")


class History:
    """The events of one run."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def add(self, at: float, process: str, kind: str, **facts: Any) -> None:
        """Note an event."""
        self.events.append({"at": round(at, 4), "process": process, "kind": kind, **facts})

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return all events of a kind."""
        return [e for e in self.events if e["kind"] == kind]

    def digest(self) -> str:
        """Return a hash over everything that happened: equal for equal histories."""
        lines = (json.dumps(e, sort_keys=True, default=str) for e in self.events)
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def story(
        self, kinds: tuple[str, ...] = ("write", "fault", "snapshot", "lead", "client")
    ) -> str:
        """Return the durable writes and faults, a line each."""
        lines = []
        for e in self.events:
            if e["kind"] in kinds:
                facts = {k: v for k, v in e.items() if k not in _UNTOLD}
                said = " ".join(f"{k}={v}" for k, v in facts.items())
                lines.append(f"{e['at']:9.3f} {e['process']:<8} {e['kind']:<9} {said}")
        return "\n".join(lines)
