"""Which tables a task has opened: each once, before its first rows, with its save modes."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from holdfast.connect.sink import Committable, Opening, Sink, life_of
from holdfast.core.gather import Opened, StagedCommittable
from holdfast.model.table import Table


class Openings:
    """The tables of one attempt.  Threads that stage slices may find new ones."""

    def __init__(self, job_id: str, incarnation: str, opened: Sequence[Opened] | None = ()) -> None:
        self._life = life_of(job_id, incarnation)
        self._incarnation = incarnation
        self._opened = None if opened is None else tuple(opened)
        self._looked_at: set[tuple[str, str]] = set()
        self._due: list[tuple[str, Committable]] = []
        self._lock = threading.Lock()

    def open(self, stage: str, sink: Sink[object], tables: Iterable[Table]) -> None:
        """Have a sink look at those tables that this attempt has not opened for it."""
        with self._lock:
            new = [t for t in tables if (stage, str(t.path)) not in self._looked_at]
            if not new:
                return
            targets = {str(t.path): sink.target(t) for t in new}
            opening = self._opening(stage, targets)
            made = sink.prepare(new, opening)
            # A sink that gives the save modes of a known table would have them applied again.
            self._due += [(stage, c) for c in made if c.table not in opening.known]
            if self._opened is not None:
                self._opened += tuple(
                    Opened(stage, path, target, self._incarnation)
                    for path, target in targets.items()
                    if path not in opening.known
                )
            self._looked_at |= {(stage, path) for path in targets}

    def take(self, number: int) -> tuple[list[StagedCommittable], tuple[Opened, ...] | None]:
        """Return what is due and was not taken, for this checkpoint; and what is open by then."""
        with self._lock:
            due, self._due = self._due, []
            return [StagedCommittable(number, stage, asdict(c)) for stage, c in due], self._opened

    def _opening(self, stage: str, targets: dict[str, str]) -> Opening:
        if self._opened is None:
            return Opening(self._life, frozenset(targets), frozenset(targets))
        found = {
            path: [o for o in self._opened if o.target == at or (o.sink, o.table) == (stage, path)]
            for path, at in targets.items()
        }
        known = frozenset(path for path, before in found.items() if before)
        earlier = frozenset(
            path for path in known if any(o.incarnation != self._incarnation for o in found[path])
        )
        return Opening(self._life, known, earlier)
