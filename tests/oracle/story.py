"""A story: the events of one run, sorted for the checks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from holdfast.core.checkpoint import Completed
from holdfast.core.job import TERMINAL, JobRecord, JobStatus
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.master import checkpoint_content
from holdfast.master.commit_loop import commit_user
from holdfast.master.ports import BlobBad
from holdfast.wire.describe import file_name
from tests.oracle.events import (
    Blob,
    Event,
    Expect,
    Fault,
    Setting,
    Snapshot,
    Stage,
    Write,
    read_events,
)

E = TypeVar("E", bound=Event)


class Life(NamedTuple):
    """One incarnation of a job."""

    job: str
    incarnation: str


class Part(NamedTuple):
    """One pipeline of one life."""

    job: str
    incarnation: str
    number: int

    @property
    def life(self) -> Life:
        """The life it is part of."""
        return Life(self.job, self.incarnation)


class Records:
    """What the store holds at one moment of a story.  `ends` remembers lives that are over."""

    def __init__(self) -> None:
        self.items: dict[str, JobRecord | PipelineRecord] = {}
        self.states: dict[str, Saved] = {}
        self.ends: dict[Life, tuple[JobStatus, int | None]] = {}

    def take(self, write: Write) -> None:
        """Apply a write."""
        if write.deleted:
            self.items.pop(write.key, None)
            self.states.pop(write.key.removeprefix("saved/"), None)
        elif isinstance(write.record, Saved):
            self.states[write.record.id] = write.record
        elif isinstance(write.record, JobRecord | PipelineRecord) and not write.key.startswith(
            "history/"
        ):
            self.items[write.key] = write.record
            if isinstance(write.record, JobRecord) and write.record.status in TERMINAL:
                self.ends.setdefault(life_of(write.record), (write.record.status, write.term))

    def pipeline(self, part: Part) -> PipelineRecord | None:
        """Return a pipeline's record, unless the key holds another life's or nothing."""
        found = self.items.get(f"pipeline/{part.job}/{part.number:04}")
        fits = isinstance(found, PipelineRecord) and found.incarnation == part.incarnation
        return cast(PipelineRecord, found) if fits else None

    def job(self, life: Life) -> JobRecord | None:
        """Return a job's record, unless the key holds another life's or nothing."""
        found = self.items.get(f"job/{life.job}")
        fits = isinstance(found, JobRecord) and found.incarnation == life.incarnation
        return cast(JobRecord, found) if fits else None


class Story:
    """The events of one run, in order."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = list(events)
        self._kinds: dict[type[Event], list[Event]] = defaultdict(list)
        self._owners: dict[str, tuple[Part, str] | None] = {}
        for event in self.events:
            self._kinds[type(event)].append(event)

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of a kind."""
        return cast(list[E], self._kinds.get(kind, []))

    def walk(self, *kinds: type[Event]) -> Iterator[tuple[Any, Records]]:
        """Yield the events of some kinds, each with the records as they stood just before it."""
        records = Records()
        events = self.of(Write) if kinds == (Write,) else self.events
        for event in events:
            kind = type(event)
            if kind in kinds:
                yield event, records
            if kind is Write:
                records.take(cast(Write, event))

    @cached_property
    def setting(self) -> Setting:
        """How patient everyone was."""
        found = self.of(Setting)
        return found[0] if found else Setting()

    @cached_property
    def healed_s(self) -> float | None:
        """When the faults ended; None if they never did."""
        healed = [f.at for f in self.of(Fault) if f.fault == "heal"]
        return healed[0] if healed else None

    @cached_property
    def jobs(self) -> dict[Life, list[JobRecord]]:
        """Every state each life of each job was in."""
        found: dict[Life, list[JobRecord]] = defaultdict(list)
        for write in self.of(Write):
            if isinstance(write.record, JobRecord) and write.key.startswith("job/"):
                found[life_of(write.record)].append(write.record)
        return found

    @cached_property
    def handed(self) -> dict[int, set[Life]]:
        """Which lives gave their id away to the next one, by the revision at which they did."""
        found: dict[int, set[Life]] = defaultdict(set)
        for write in self.of(Write):
            if isinstance(write.record, JobRecord) and write.key.startswith("grave/"):
                found[write.revision].add(life_of(write.record))
        return found

    @cached_property
    def lines(self) -> dict[Life, Life]:
        """Each life and the first of its line: the one that began from nothing."""
        found: dict[Life, Life] = {}
        for life, jobs in self.jobs.items():
            origin = jobs[0].origin
            before = Life(*origin.split("/")) if origin else None
            found[life] = found.get(before, before) if before else life
        return found

    @cached_property
    def pipelines(self) -> dict[Part, list[PipelineRecord]]:
        """Every state each pipeline was in."""
        found: dict[Part, list[PipelineRecord]] = defaultdict(list)
        for write in self.of(Write):
            if isinstance(write.record, PipelineRecord):
                found[part_of(write.record)].append(write.record)
        return found

    @cached_property
    def completed(self) -> dict[Part, list[Completed]]:
        """The complete checkpoints of each pipeline, in order, but for those that were lost."""
        found: dict[Part, list[Completed]] = {}
        for part, states in self.pipelines.items():
            done = {s.checkpoints.latest: None for s in states if s.checkpoints.latest}
            lost = {number for s in states for number in s.checkpoints.lost}
            found[part] = [c for c in done if c.number not in lost]
        return found

    @cached_property
    def contents(self) -> dict[str, checkpoint_content.CheckpointContent]:
        """What each blob held that can be read."""
        found: dict[str, checkpoint_content.CheckpointContent] = {}
        for event in self.of(Blob):
            try:
                found[event.name] = checkpoint_content.read(event.content.encode())
            except BlobBad:
                continue  # whoever needs it will miss it
        return found

    @cached_property
    def snapshots(self) -> dict[tuple[str, str], list[Snapshot]]:
        """The snapshots of each (table, user), in order."""
        found: dict[tuple[str, str], list[Snapshot]] = defaultdict(list)
        for event in self.of(Snapshot):
            found[(event.table, event.user)].append(event)
        return found

    @cached_property
    def rows(self) -> dict[str, tuple[tuple[str, int], ...]]:
        """The rows of each file."""
        return {s.file: s.rows for s in self.of(Stage)}

    @cached_property
    def expected(self) -> dict[str, frozenset[tuple[str, int]]]:
        """The rows of each job's sources."""
        return {e.job: frozenset(e.rows) for e in self.of(Expect)}

    def owner(self, user: str) -> tuple[Part, str] | None:
        """Return the pipeline and the sink of a commit user; None for a user that is not ours."""
        if user not in self._owners:
            self._owners[user] = None
            for part in self.pipelines:
                ours = commit_user(part.job, part.incarnation, part.number, "")
                if user.startswith(ours):
                    self._owners[user] = (part, user.removeprefix(ours))
        return self._owners[user]

    def restored(self, part: Part) -> dict[str, Any]:
        """Return the positions a pipeline's life began with: those of its declared source."""
        name = self.pipelines[part][0].restore if self.pipelines.get(part) else None
        content = self.contents.get(name) if name else None
        return dict(content.positions) if content else {}

    def files(self, completed: Completed) -> dict[str, tuple[str, ...]] | None:
        """Return the files that a checkpoint adds to each sink; None if its blob is unknown."""
        content = self.contents.get(completed.blob)
        if content is None:
            return None
        found: dict[str, list[str]] = defaultdict(list)
        for staged in content.to_commit(completed.previous):
            found[staged.sink].append(file_name(staged.content))
        return {sink: tuple(files) for sink, files in found.items()}


def read_log(paths: Iterable[Path]) -> Story:
    """Return the story that the event logs of real processes tell."""
    return Story(read_events(paths))


def life_of(record: JobRecord | PipelineRecord) -> Life:
    """Return the life a record belongs to."""
    return Life(record.id if isinstance(record, JobRecord) else record.job, record.incarnation)


def part_of(record: PipelineRecord) -> Part:
    """Return the pipeline a record is of."""
    return Part(record.job, record.incarnation, record.number)


def latest(state: PipelineRecord | None) -> int:
    """Return the number of a pipeline's latest complete checkpoint; 0 if it has none."""
    done = state.checkpoints.latest if state else None
    return done.number if done else 0
