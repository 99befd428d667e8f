"""Run every check over a story."""

from collections.abc import Callable, Iterator

from tests.oracle import (
    checkpoints,
    commits,
    completion,
    leadership,
    lifecycle,
    liveness,
    savepoints,
    shown,
    substrate,
    tasks,
    tombstones,
)
from tests.oracle.story import Story

Check = Callable[[Story], Iterator[str]]

CHECKS: tuple[Check, ...] = (
    *leadership.CHECKS, *lifecycle.CHECKS, *tasks.CHECKS, *checkpoints.CHECKS,
    *completion.CHECKS, *commits.CHECKS, *savepoints.CHECKS, *tombstones.CHECKS,
    *liveness.CHECKS, *shown.CHECKS, *substrate.CHECKS,
)  # fmt: skip


def check_story(story: Story) -> list[str]:
    """Return every violation in a story, sorted, each once."""
    return sorted({text for one in CHECKS for text in one(story)})


def numbers(check: Check) -> list[str]:
    """Return the invariants that a check speaks for: the first words of its docstring."""
    head, _, _ = (check.__doc__ or "").partition(":")
    return head.split()
