"""What can go wrong in one run, and how badly; drawn from the seed, or all of it off."""

import random
from dataclasses import dataclass, replace


@dataclass
class Faults:
    """The magnitudes of one run.  `quiet` ends them all: the healed phase."""

    store_unknown: float = 0.0
    store_error: float = 0.0
    message_lost: float = 0.0
    message_twice: float = 0.0
    message_slow_s: float = 0.03
    commit_slow_s: float = 0.1
    commit_unknown: float = 0.0
    blob_error: float = 0.0
    task_failure: float = 0.0
    foreign_commit: float = 0.0
    quiet: bool = False

    @classmethod
    def drawn(cls, rng: random.Random) -> "Faults":
        """Draw a swarm: each kind of fault is on in some runs and off in others."""
        return cls(
            store_unknown=rng.choice([0.0, 0.01, 0.04]),
            store_error=rng.choice([0.0, 0.01, 0.03]),
            message_lost=rng.choice([0.0, 0.01, 0.05]),
            message_twice=rng.choice([0.0, 0.02, 0.05]),
            message_slow_s=rng.choice([0.03, 0.4, 4.0]),
            commit_slow_s=rng.choice([0.1, 1.5, 9.0]),
            commit_unknown=rng.choice([0.0, 0.05]),
            blob_error=rng.choice([0.0, 0.02]),
            task_failure=rng.choice([0.0, 0.0, 0.01]),
            foreign_commit=rng.choice([0.0, 0.2]),
        )

    def fresh(self) -> "Faults":
        """Return the same magnitudes for another run: a run ends its own."""
        return replace(self, quiet=False)

    def happens(self, rng: random.Random, chance: float) -> bool:
        """Say whether a fault of this chance strikes now."""
        return not self.quiet and chance > 0 and rng.random() < chance
