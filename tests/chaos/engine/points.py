"""The harness's side of the failpoints: arm one, wait for its hit, let go of what it holds."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

LOOK_S = 0.02


class Points:
    """The failpoints of a cluster's processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.hits: list[dict[str, Any]] = []
        self._last = 0

    def arm(self, point: str, action: str = "kill", count: int = 1, process: str = "") -> int:
        """Arm a point; return its number."""
        self._last += 1
        facts = {"point": point, "action": action, "count": count, "process": process or None}
        draft = self.folder / f".arm-{self._last}"
        draft.write_text(json.dumps(facts))
        draft.rename(self.folder / f"arm-{self._last}.json")
        return self._last

    def found(self, number: int) -> dict[str, Any] | None:
        """Return the hit of an armed point, if there was one."""
        path = self.folder / f"hit-{number}.json"
        if not path.exists():
            return None
        facts: dict[str, Any] = json.loads(path.read_text())
        return facts

    async def hit(self, number: int) -> dict[str, Any]:
        """Wait until an armed point was hit; return who did."""
        while (facts := self.found(number)) is None:
            await asyncio.sleep(LOOK_S)
        self.hits.append(facts)
        return facts

    def release(self, number: int) -> None:
        """Let go of whoever an armed point holds."""
        (self.folder / f"release-{number}").touch()

    def clear(self) -> None:
        """Disarm everything, and let go of everyone."""
        for path in self.folder.glob("arm-*.json"):
            found = re.fullmatch(r"arm-(\d+)\.json", path.name)
            assert found
            self.release(int(found[1]))
            path.unlink()
