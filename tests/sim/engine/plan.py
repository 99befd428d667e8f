"""What happens in a run, as data: the jobs, what is asked of them, and the trouble.

A plan is drawn from a seed, or written by hand for one window.  Because it is data, a failing one
can be made smaller piece by piece (`shrink.py`).
"""

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.master.ports import MasterSettings
from tests.sim.engine.faults import Faults
from tests.sim.engine.world import JobSpec, World

FAULTY_S = 30.0
STRIKES_MAX = 6

Script = Callable[[World], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Wish:
    """What a user asks of one life of a job.

    `cancel`, `force` (a cancel that waits for no commit), `savepoint`, `forget` (a saved state).
    `drain W1` and `undrain W1` are about a worker, and come when the job's user says so.
    """

    job: str
    after_s: float
    what: str
    life: int = 1


@dataclass(frozen=True)
class Strike:
    """One stroke of bad luck; `dice` decides whom it hits and how hard."""

    after_s: float
    kind: str
    dice: int


STRIKES = (
    "kill leader", "kill leader", "kill worker", "kill any", "kill both", "pause leader",
    "pause worker", "cut store", "cut worker", "cut one way", "store down",
)  # fmt: skip


@dataclass(frozen=True)
class Refusal:
    """A table that refuses every commit for a while, until a person has mended it."""

    sink: str
    from_s: float
    to_s: float


@dataclass
class Plan:
    """What happens in a run.  `crashes` maps (moment, occurrence) to kill or pause[:seconds].

    `rest_s`: how long users wait before they have a job go on.
    """

    jobs: tuple[JobSpec, ...] = (JobSpec("j"),)
    lives: int = 1
    faults: Faults = field(default_factory=Faults)
    strikes: tuple[Strike, ...] = ()
    wishes: tuple[Wish, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    crashes: dict[tuple[str, int], str] = field(default_factory=dict)
    script: Script | None = None
    settings: MasterSettings = field(default_factory=MasterSettings)
    faulty_s: float = FAULTY_S
    in_order: bool = False
    rest_s: float = 0.0

    def wished(self, job: JobSpec, life: int) -> list[Wish]:
        """Return what is asked of one life; one that never ends by itself is cancelled at last."""
        wishes = [w for w in self.wishes if w.job == job.id and w.life == life]
        if not job.rows and not any(w.what in ("cancel", "force") for w in wishes):
            wishes.append(Wish(job.id, self.faulty_s + 8, "cancel", life))
        return wishes


SHAPES = (
    ((("a",), ("b",)),),
    ((("a",), ("b",), ("c",)),),
    ((("a", "b"),),),
    ((("a",),), (("b",),)),
)


def random_plan(seed: int) -> Plan:
    """Draw a plan from a seed: jobs, lives, wishes and which kinds of faults are on."""
    rng = random.Random(f"plan {seed}")
    lives = rng.choice([1, 2, 3])
    jobs = tuple(_job(rng, f"j{i}") for i in range(1, rng.choice([1, 1, 2]) + 1))
    opens = random.Random(f"save modes {seed}")  # its own, so that all else of a seed stays
    jobs = tuple(replace(job, empties=opens.random() < 0.4) for job in jobs)
    parts = [(job, life) for job in jobs for life in range(1, lives + 1)]
    wishes = [w for job, life in parts for w in _wishes(rng, job, life)]
    forces = random.Random(f"force {seed}")
    return Plan(
        jobs=jobs,
        lives=lives,
        faults=Faults.drawn(rng),
        strikes=_strikes(rng),
        wishes=tuple(_forced(forces, wish) for wish in wishes),
        refusals=_refusals(rng),
    )


def _job(rng: random.Random, name: str) -> JobSpec:
    return JobSpec(
        name,
        rng.choice(SHAPES),
        rows=rng.choice([0, 4, 6, 6, 9, 9, 16]),
        sinks=rng.choice([("t",), ("t", "u")]),
        retry_times=rng.choice([50, 50, 50, 1]),
    )


def _wishes(rng: random.Random, job: JobSpec, life: int) -> list[Wish]:
    """A few are cancelled, a few saved, some both; one without an end at some time."""
    wishes = []
    if rng.random() < (0.3 if job.rows else 0.6):
        wishes.append(Wish(job.id, rng.uniform(0.5, 12), "savepoint", life))
    if rng.random() < (0.3 if job.rows else 1):
        wishes.append(Wish(job.id, rng.uniform(0.5, 12), "cancel", life))
    if rng.random() < 0.1:
        wishes.append(Wish(job.id, rng.uniform(0.5, 12), "forget", life))
    return wishes


def _forced(rng: random.Random, wish: Wish) -> Wish:
    """Some who cancel do not wait for commits."""
    forced = wish.what == "cancel" and rng.random() < 0.4
    return replace(wish, what="force") if forced else wish


def _refusals(rng: random.Random) -> tuple[Refusal, ...]:
    """Now and then a table has other columns than a job, for a while."""
    if rng.random() > 0.2:
        return ()
    from_s = rng.uniform(1, 12)
    return (Refusal("t", from_s, from_s + rng.uniform(1, 8)),)


def _strikes(rng: random.Random) -> tuple[Strike, ...]:
    count = rng.randrange(0, STRIKES_MAX + 1)
    return tuple(
        Strike(rng.random() * 8, rng.choice(STRIKES), rng.randrange(1 << 30)) for _ in range(count)
    )
