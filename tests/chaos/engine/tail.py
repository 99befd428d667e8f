"""Follow the event logs of all processes while they are written."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOOK_S = 0.03

Facts = dict[str, Any]


class Tail:
    """What the processes of a cluster have noted so far, in the order it was read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.events: list[Facts] = []

    def look(self) -> list[Facts]:
        """Read what is new; return everything."""
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
            whole = text.rfind(b"\n") + 1
            self._read[path] = self._read.get(path, 0) + whole
            self.events += [json.loads(line) for line in text[:whole].splitlines()]
        return self.events

    def forget(self) -> None:
        """Look away from what was noted so far: what comes next need not be sought among it."""
        self.look()
        self.events.clear()

    async def saw(self, since_s: float, match: Callable[[Facts], object], count: int = 1) -> Facts:
        """Wait for the nth event of a kind after a moment; return it."""
        while True:
            found = [e for e in self.look() if e["at"] >= since_s and match(e)]
            if len(found) >= count:
                return found[count - 1]
            await asyncio.sleep(LOOK_S)
