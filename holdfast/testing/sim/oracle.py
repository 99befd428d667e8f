"""Ask the oracle about a simulated world: its history, and what is left in it at the end."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.core.election import ACT_SHARE
from holdfast.core.job import Job
from holdfast.testing.oracle.check import CHECKS, check_story
from holdfast.testing.oracle.events import (
    Event,
    Expect,
    Left,
    Setting,
    Stuck,
    Write,
    from_facts,
)
from holdfast.testing.oracle.story import Story
from holdfast.testing.sim.worker import ORPHAN_S

if TYPE_CHECKING:
    from holdfast.testing.sim.world import World

__all__ = ["CHECKS", "Story", "check", "check_story", "story_of"]

SLOW_S = 1.0
"""Messages that take longer may make a worker seem lost."""


def check(world: "World", stuck: list[str]) -> list[str]:
    """Return every violation of a run, sorted."""
    return check_story(story_of(world, stuck))


def story_of(world: "World", stuck: list[str]) -> Story:
    """Return the story of a world, with what was found in it at the end."""
    at = world.loop.time()
    errors = [f"E {e}" for e in (*sorted(set(world.loop.errors)), *world.loop.bugs())]
    told = [e for facts in world.history.events if (e := from_facts(facts))]
    events: list[Event] = [_setting(world), *_expected(world), *told]
    events += [Stuck(at=at, why=why) for why in (*stuck, *errors)]
    if not stuck:
        events += [Left(at=at, thing=thing) for thing in _left(world, told)]
    return Story(events)


def _setting(world: "World") -> Setting:
    settings, faults = world.settings, world.faults
    lossy = faults.message_lost > 0 or faults.task_failure > 0 or faults.message_slow_s > SLOW_S
    return Setting(
        lease_s=settings.lease_s,
        act_s=settings.lease_s * ACT_SHARE,
        tombstone_s=settings.tombstone_s,
        interval_s=settings.interval_s,
        timeout_s=settings.timeout_s,
        worker_lost_s=settings.worker_lost_s,
        orphan_s=ORPHAN_S,
        lossy=lossy
        or bool(world.network.taps or world.hangs or world.slow_to_open or world.poisoned),
    )


def _expected(world: "World") -> Iterator[Expect]:
    for spec in world.specs.values():
        sources = [s for p in spec.pipelines for t in p for s in t]
        yield Expect(
            job=spec.id, rows=tuple((s, n) for s in sources for n in range(spec.length(s)))
        )


def _left(world: "World", told: list[Event]) -> list[str]:
    """What no job needs any more.  Savepoints outlive their job, and the history of it too."""
    held = {f for t in world.tables.tables.values() for s in t.snapshots for f in s.files}
    buried = [w.record for w in told if isinstance(w, Write) and w.key.startswith("history/")]
    saved = {name for job in buried if isinstance(job, Job) for _, name in job.saved}
    left = [f"staged file {f}" for f in world.tables.files if f not in held]
    left += [f"key {k}" for k in world.store.items if k.startswith(("job/", "pipeline/"))]
    return left + [f"blob {b}" for b in world.blobs.objects if b not in saved]
