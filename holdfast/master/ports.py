"""All that a master touches of the world, so that a simulation can stand in for it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from holdfast.core.checkpoint import CheckpointKind
from holdfast.core.gather import StagedCommittable
from holdfast.errors import HoldfastError
from holdfast.wire.messages import ToWorker

T = TypeVar("T")


class BlobBad(HoldfastError):
    """A blob is missing, cut short or not what was stored."""


class Clock(Protocol):
    """Time that only measures, and never goes back; and the date, which decides nothing."""

    def now(self) -> float:
        """Return seconds since some moment."""

    def date(self) -> float:
        """Return seconds since 1970, for people to read.  It may jump; nothing depends on it."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class Blobs(Protocol):
    """Immutable objects: whole or invisible."""

    async def put(self, name: str, content: bytes) -> None:
        """Store an object under a new name."""

    async def get(self, name: str) -> bytes:
        """Return an object, or raise `BlobBad` if it is not there whole."""

    async def drop(self, *names: str) -> None:
        """Remove objects, one after the other.  Repeatable."""

    async def names(self, prefix: str) -> list[str]:
        """Return the names that start with a prefix, sorted."""


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One incarnation of a job: the job's id, its own, and what its job file says."""

    job: str
    incarnation: str
    spec: str


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """What a sink is to make visible: who commits, under which number, and what."""

    life: Incarnation
    user: str
    number: int
    sink: str
    staged: tuple[StagedCommittable, ...]
    watermark: int | None


@dataclass(frozen=True, slots=True)
class CommitHookRequest:
    """A commit that is visible, for the listeners of a pipeline's sinks.

    `user` has no sink: with one behind it, it is who committed to that.  `staged` is what the
    commit has shown, in all sinks; None where no listener needs to know.  `state` is what
    listeners remember.
    """

    life: Incarnation
    user: str
    number: int
    kind: CheckpointKind
    sinks: tuple[str, ...]
    watermark: int | None
    state: str
    staged: tuple[StagedCommittable, ...] | None = None


@dataclass(frozen=True, slots=True)
class TableState:
    """A table's version, and the highest number that a user has committed to it (0: none)."""

    version: int
    committed: int


class Committers(Protocol):
    """The sinks' side that only the leader uses."""

    async def admit(self, life: Incarnation, staged: tuple[StagedCommittable, ...]) -> None:
        """Raise `UserError` for what the sinks of this life have not staged themselves.

        Nothing is opened; what only the table can tell is found by its commit.
        """

    async def read(self, order: CommitRequest) -> TableState:
        """Return the table's present version and what the order's user has committed."""

    async def publish(self, version: int, order: CommitRequest) -> bool:
        """Make an order visible if the table still has that version; say whether it did.

        Raises `OutcomeUnknown` where that is not known, and `UserError` where it can never work.
        """

    async def listens(self, life: Incarnation, sinks: tuple[str, ...]) -> bool:
        """Say whether any of these sinks has a listener."""

    async def listen(self, order: CommitHookRequest) -> str:
        """Run the listeners of a commit; return what they must remember.  Repeatable.

        Raises `Unavailable` or `OutcomeUnknown` where it may work later, and `UserError` where it
        never can.
        """

    async def finish(self, life: Incarnation, rows: Mapping[str, Mapping[str, int]]) -> None:
        """Tell sinks that the input has ended, just before the last commit.  Repeatable.

        `rows` counts what was written since the start of the incarnation: sink -> table -> rows.
        Raises `UserError` if one of them will not have it so; then nothing of the last commit
        shows.
        """

    async def sweep(self, life: Incarnation) -> None:
        """Remove whatever an incarnation has staged and never committed."""


class Workers(Protocol):
    """The way to the workers."""

    def send(self, incarnation: str, message: ToWorker) -> None:
        """Send a message to a worker; it may be lost."""


@dataclass(frozen=True, slots=True)
class MasterSettings:
    """How patient a master is, in seconds.

    `saves`: incarnations leave saved states at their end.  They are of no use where the store goes
    with the job.
    """

    lease_s: float = 3.0
    campaign_s: float = 0.5
    resend_s: float = 0.5
    worker_lost_s: float = 3.0
    progress_s: float = 10.0
    interval_s: float = 1.0
    timeout_s: float = 5.0
    tombstone_s: float = 5.0
    retry_s: float = 0.3
    history: int = 1000
    tidy_s: float = 10.0
    saves: bool = True


class Points(Protocol):
    """Named moments around every durable step, where a test may end the process."""

    async def hit(self, name: str) -> None:
        """Pass a moment: `before:label` or `after:label`."""


@dataclass(frozen=True)
class Ports:
    """Everything a master needs."""

    clock: Clock
    blobs: Blobs
    tables: Committers
    workers: Workers
    points: Points
    settings: MasterSettings
    wrote: Callable[[str], None] = lambda key: None
    """Observes keepers: called with the key of each record that this master has written."""

    async def durable(self, label: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make a durable call under a label.  Every such call has one."""
        await self.points.hit(f"before:{label}")
        result = await call()
        await self.points.hit(f"after:{label}")
        return result
