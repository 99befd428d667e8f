"""What a task has staged and no complete checkpoint holds.

Every answer to a barrier names it, so it must not grow without end while no checkpoint completes:
the blob store is away, or as many commits wait as may.  From a bound on the task reads no further
until a checkpoint holds what it has; without checkpoints between start and end nothing would free
it, so there only the largest message is a bound, and whoever passes it is told so.
"""

import logging
from collections.abc import Iterable
from dataclasses import asdict

import msgspec

from holdfast.connect.sink import Committable
from holdfast.core.gather import StagedCommittable
from holdfast.errors import UserError
from holdfast.model.tree import Plain
from holdfast.wire.codec import FRAME_BYTES_MAX
from holdfast.worker.task_runner import StagedSlice

NAMES_BYTES_PAUSE = FRAME_BYTES_MAX // 2
"""From so many bytes of names on a task waits for a checkpoint; the other half is for slices that
are under way then."""

NAMES_BYTES_MAX = FRAME_BYTES_MAX // 16 * 15
"""What names may take of one answer; the rest is for positions and counters."""

MIB = 1024 * 1024

log = logging.getLogger("holdfast")


class Unheld:
    """The names of what is staged.  Only the task's own thread calls this."""

    def __init__(self, periodic: bool) -> None:
        self.fresh: list[StagedSlice] = []
        self._periodic = periodic
        self._new: list[tuple[str, Plain, int]] = []
        self._said: list[tuple[StagedCommittable, int]] = []
        self._bytes = 0
        self._waits = False

    def waits(self, name: str) -> bool:
        """Say whether the task must wait for a checkpoint before it stages more."""
        waits = self._periodic and self._bytes >= NAMES_BYTES_PAUSE
        if waits and not self._waits:
            log.warning(
                "%s reads no further until a checkpoint completes: it has staged %d MiB of names"
                " that none holds", name, self._bytes // MIB,
            )  # fmt: skip
        self._waits = waits
        return waits

    def add(self, made: StagedSlice) -> None:
        """Take in what slices have staged since the last answer."""
        self.fresh.append(made)
        for sink, committables in made.committables.items():
            self._take(sink, committables)

    def answer(
        self, task: str, number: int, complete: int, due: list[StagedCommittable]
    ) -> tuple[StagedCommittable, ...]:
        """Return what this answer names: all that was staged after the latest complete one.

        What is new is from now on part of checkpoint `number`.  `due` are save modes, which come
        before the rows that were staged with them.
        """
        kept = [(s, size) for s, size in self._said if s.created > complete]
        kept += [(s, _size(s.content)) for s in due]
        kept += [
            (StagedCommittable(number, sink, content), size) for sink, content, size in self._new
        ]
        self._bytes = sum(size for _, size in kept)
        if self._bytes > NAMES_BYTES_MAX:
            raise UserError(
                f"Task {task} has staged {len(kept):,} pieces that no checkpoint holds yet; their"
                f" names take {self._bytes // MIB} MiB, and one answer has room for"
                f" {NAMES_BYTES_MAX // MIB}. Have checkpoints more often (checkpoint.interval), or"
                " write fewer and larger files: fewer partitions.",
                code="task.too_many_files",
            )
        self._said, self._new, self.fresh = kept, [], []
        return tuple(staged for staged, _ in kept)

    def _take(self, sink: str, committables: Iterable[Committable]) -> None:
        for committable in committables:
            content: Plain = asdict(committable)
            size = _size(content)
            self._new.append((sink, content, size))
            self._bytes += size


def _size(content: Plain) -> int:
    return len(msgspec.msgpack.encode(content))
