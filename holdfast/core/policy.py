"""What a job file asks for about checkpoints and retries."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """How a pipeline is to be kept.  None: as its master is set.

    Without `periodic`, the only checkpoints are savepoints and the one at the end.  A task that
    stands still and leaves `tolerable_failures` checkpoints in a row without an answer is started
    anew (0: never); one that only takes long is waited for.
    """

    interval_s: float | None = None
    timeout_s: float | None = None
    periodic: bool = True
    retry_interval_s: float = 0.0
    tolerable_failures: int = 3
