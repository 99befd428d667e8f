"""The snapshots of a table: `snapshot/snapshot-<N>`, and the highest N is the table.

A commit writes the next snapshot next to them and then gives it its number with a hard link, which
only one of many can create.  There is no lock: a committer that stops, wherever it is, blocks no
other.  `LATEST` and `EARLIEST` are hints to readers; we believe neither.
"""

import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMITTED = "holdfast.committed"
"""The property of a snapshot that has the number of every user of ours, as JSON."""

USERS_MAX = 1000
"""So many users are remembered, those that committed last."""

APPEND = "APPEND"

_NAME = re.compile(r"snapshot-(\d+)")


@dataclass(frozen=True)
class Snapshot:
    """A state of the table."""

    content: Mapping[str, Any]

    @property
    def number(self) -> int:
        """Which state this is."""
        return int(self.content["id"])

    @property
    def committed(self) -> dict[str, int] | None:
        """The highest number of each user of ours, the latest user last; None if not ours."""
        said = (self.content.get("properties") or {}).get(COMMITTED)
        return None if said is None else json.loads(said)

    @property
    def is_ours(self) -> bool:
        """Whether this sink has committed it."""
        return self.committed is not None and not self.content.get("changelogManifestList")


class Snapshots:
    """The folder with the snapshots of one table."""

    def __init__(self, table: Path) -> None:
        self.folder = table / "snapshot"

    def path(self, number: int) -> Path:
        """Return where a snapshot is, whether it is there or not."""
        return self.folder / f"snapshot-{number}"

    def read(self, number: int) -> Snapshot | None:
        """Return a snapshot; None if there is none of this number, or none any more."""
        return read_snapshot(self.path(number))

    def latest(self) -> Snapshot | None:
        """Return the latest snapshot; None if there is none."""
        while True:
            number = self.latest_number()
            found = self.read(number) if number else None
            if found is not None or not number:
                return found
            # There were many commits since we looked, and this one has expired.

    def latest_number(self) -> int:
        """Return the number of the latest snapshot; 0 if there is none.

        The folder may be large, so it is listed only where the hint leads nowhere.
        """
        number = self._hinted()
        if not number or not self.path(number).exists():
            number = max(self.listed(), default=0)
        while self.path(number + 1).exists():
            number += 1
        return number

    def listed(self) -> Iterator[int]:
        """Yield the numbers of all snapshots, in any order."""
        try:
            names = [path.name for path in self.folder.iterdir()]
        except FileNotFoundError:
            return
        for name in names:
            found = _NAME.fullmatch(name)
            if found:
                yield int(found[1])

    def back_from(self, head: Snapshot | None, down_to: int = 1) -> Iterator[Snapshot]:
        """Yield a snapshot and those before it, as far as they have not expired."""
        while head is not None:
            yield head
            head = self.read(head.number - 1) if head.number > down_to else None

    def link(self, snapshot: Snapshot) -> bool:
        """Give a snapshot its number; False if there is one of that number."""
        return link_new(self.path(snapshot.number), snapshot)

    def hint(self, number: int) -> None:
        """Tell other readers which snapshot is the latest."""
        target = self.folder / "LATEST"
        while self._hinted() != (number := max(number, self.latest_number())):
            self._put(target, number)
            # And look again: one that was held up here has put a number that is too low.

    def hint_earliest(self, number: int) -> None:
        """Tell other readers where to begin."""
        self._put(self.folder / "EARLIEST", number)

    def _put(self, target: Path, number: int) -> None:
        beside = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
        beside.write_text(str(number))
        beside.replace(target)

    def _hinted(self) -> int:
        try:
            said = (self.folder / "LATEST").read_text().strip()
        except FileNotFoundError:
            return 0
        return int(said) if said.isdecimal() else 0


def link_new(target: Path, snapshot: Snapshot) -> bool:
    """Put a snapshot where there is none; False if there is one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
    try:
        write_durably(beside, json.dumps(snapshot.content).encode())
        os.link(beside, target)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def read_snapshot(path: Path) -> Snapshot | None:
    """Return the snapshot, or the tag, that a file has; None if there is no such file."""
    try:
        return Snapshot(json.loads(path.read_text()))
    except FileNotFoundError:
        return None


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file, so that it is whole once it has its name, even after a power cut."""
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
