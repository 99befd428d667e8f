"""Ask the oracle about a simulated world: its history, and what is left in it at the end."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.core.election import ACT_SHARE
from holdfast.core.saved_state import Saved
from holdfast.master.records import decode
from tests.oracle.check import CHECKS, check_story
from tests.oracle.events import Event, Expect, Left, Setting, Stuck, from_facts
from tests.oracle.story import Story
from tests.sim.engine.worker import ORPHAN_S

if TYPE_CHECKING:
    from tests.sim.engine.world import World

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
        events += [Left(at=at, thing=thing) for thing in _left(world)]
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


def _left(world: "World") -> list[str]:
    """What no job needs any more.  Saved states outlive their job, and the history of it too."""
    items = world.store.items
    states = [decode(Saved, i.value) for k, i in items.items() if k.startswith("saved/")]
    held = {f for t in world.tables.tables.values() for s in t.snapshots for f in s.files}
    needed = {f"{s.job}/{s.incarnation}" for s in states if s.unfinished}
    staged = [f for f in world.tables.files if f not in held]
    left = [f"staged file {f}" for f in staged if "/".join(f.split("/")[:2]) not in needed]
    left += [f"key {k}" for k in items if k.startswith(("job/", "pipeline/", "grave/"))]
    left += [f"key saved/{s.id}" for s in states if s.removed]
    ids = {s.id for s in states}
    left += [f"key {k}" for k in items if k.startswith("heir/") and _heir_of(k) not in ids]
    saved = {name for state in states for name in state.blobs}
    return left + [f"blob {b}" for b in world.blobs.objects if b not in saved]


def _heir_of(key: str) -> str:
    """Return the saved state that a life is the heir of, from the key that says so."""
    return "/".join(key.split("/")[1:3])
