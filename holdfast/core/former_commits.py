"""Commits that a former incarnation left, and that the incarnation restored from it finishes.

They run before the first task starts, in order, under the identifiers of the incarnation that
staged them: the sinks find out themselves which of them are visible already.
"""

from dataclasses import dataclass, replace

from holdfast.core.checkpoint import Completed
from holdfast.core.commit import Committed, HooksFinished


@dataclass(frozen=True, slots=True)
class Former:
    """What one pipeline of a former incarnation has left unfinished.

    `names` maps the sinks of that incarnation to the sinks of this one.  `unheard` is visible, and
    its listeners have not run.
    """

    job: str
    incarnation: str
    pipeline: int
    names: tuple[tuple[str, str], ...]
    waiting: tuple[Completed, ...]
    unheard: Completed | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do."""
        return not self.waiting and self.unheard is None


def step(old: Former, event: Committed | HooksFinished) -> Former:
    """Return what is left after one commit, or after its listeners."""
    match event:
        case Committed(number) if not old.unheard and old.waiting[:1]:
            first = old.waiting[0]
            if first.number == number:
                return replace(old, waiting=old.waiting[1:], unheard=first)
        case HooksFinished(number) if old.unheard and old.unheard.number == number:
            return replace(old, unheard=None)
    return old


def next_of(formers: tuple[Former, ...]) -> tuple[int, Former] | None:
    """Return the first that is not settled, and its place; None if all are."""
    return next(((i, f) for i, f in enumerate(formers) if not f.settled), None)
