"""Commits of one pipeline: complete checkpoints become visible, in order, under their own numbers.

A checkpoint that is complete must be committed, by this leader or a later one; nothing waits for it
but the next commit.  Listeners (partition done, tag, webhook) run after the commit they belong to,
also when the commit is found already done.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar

from holdfast.core.checkpoint import CheckpointLost, Completed
from holdfast.core.machine import TransitionTable


class CommitStatus(StrEnum):
    """What is owed next."""

    SETTLED = "settled"
    COMMITTING = "committing"
    LISTENING = "listening"


SETTLED, COMMITTING, LISTENING = CommitStatus


@dataclass(frozen=True, slots=True)
class CheckpointCompleted:
    """A checkpoint has just become complete."""

    label: ClassVar[str] = "CheckpointCompleted"

    completed: Completed


@dataclass(frozen=True, slots=True)
class Committed:
    """A checkpoint is visible in every sink, now or since before."""

    label: ClassVar[str] = "Committed"

    number: int
    watermark: int | None


@dataclass(frozen=True, slots=True)
class HooksFinished:
    """Every listener has run for a commit; `state` is what they must remember."""

    label: ClassVar[str] = "HooksFinished"

    number: int
    state: str


COMMIT = TransitionTable(
    "commit",
    [
        # from       on                   to
        (SETTLED, CheckpointCompleted, COMMITTING),
        (SETTLED, Committed, SETTLED),  # a former leader's commit, confirmed late
        (SETTLED, HooksFinished, SETTLED),
        (COMMITTING, CheckpointCompleted, COMMITTING),  # commits may lag behind checkpoints
        (COMMITTING, Committed, LISTENING),
        (COMMITTING, Committed, COMMITTING),  # of an earlier number
        (COMMITTING, HooksFinished, COMMITTING),
        (COMMITTING, CheckpointLost, COMMITTING),  # a later one, whose turn had not come
        (COMMITTING, CheckpointLost, SETTLED),
        (LISTENING, CheckpointCompleted, LISTENING),
        (LISTENING, Committed, LISTENING),
        (LISTENING, HooksFinished, SETTLED),
        (LISTENING, HooksFinished, COMMITTING),  # the next one waits
        (LISTENING, HooksFinished, LISTENING),  # of an earlier number
        (LISTENING, CheckpointLost, LISTENING),
    ],
)


@dataclass(frozen=True, slots=True)
class Commits:
    """What is visible (`through`), and the complete checkpoints that are not yet."""

    waiting: tuple[Completed, ...] = ()
    through: int = 0
    listened: int = 0
    watermark: int | None = None
    listeners: str = ""

    @property
    def status(self) -> CommitStatus:
        """What is owed next."""
        if self.listened < self.through:
            return LISTENING
        return COMMITTING if self.waiting else SETTLED


def step(old: Commits, event: object) -> Commits:
    """Return the commits after `event`."""
    new = old
    match event:
        case CheckpointCompleted(completed):
            new = replace(old, waiting=(*old.waiting, completed))
        case Committed(number, watermark) if (
            old.status is COMMITTING and old.waiting[0].number == number
        ):
            new = replace(
                old,
                waiting=old.waiting[1:],
                through=number,
                watermark=later(old.watermark, watermark),
            )
        case HooksFinished(number, state) if old.status is LISTENING and old.through == number:
            new = replace(old, listened=number, listeners=state)
        case CheckpointLost(number):
            # Those after it may lack what only this one held.
            new = replace(old, waiting=tuple(c for c in old.waiting if c.number < number))
    COMMIT.check(old.status, event, new.status)
    return new


def may_have_begun(commits: Commits, number: int) -> bool:
    """Say whether some leader may have begun to make a checkpoint visible, as the record has it.

    None begins one before all earlier ones, with their listeners, are on record as done.
    """
    if number <= commits.through or commits.status is not COMMITTING:
        return number <= commits.through
    return commits.waiting[0].number == number


def later(one: int | None, other: int | None) -> int | None:
    """A watermark never goes back, and an unknown one changes nothing."""
    known = [w for w in (one, other) if w is not None]
    return max(known, default=None)
