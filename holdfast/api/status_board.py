"""What the leading master has seen of its jobs, for people to look at.

It decides nothing.  `Ports.wrote` says which records changed; those, and only those, are looked at
again, for the pages and for the journal.  Rates come from the heartbeats of workers, which say how
far each task is: no read of the API ever asks a worker.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice

from holdfast.api.timeline import CheckpointLog, events_of
from holdfast.api.views import TimelineEvent
from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.master.event_log import EventHistory
from holdfast.master.journal import Journal
from holdfast.master.leader import Leader
from holdfast.master.master import Master
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.ports import Clock
from holdfast.wire.messages import TaskKey, TaskReport

LOOK_S = 1.0
RATE_S = 10.0
"""Rates are taken over about so long."""

GONE_KEPT = 1_000
PAST_KEPT = 200
"""Of so many jobs that are over this leader still knows how they went."""
STACKS_KEPT = 500
LOOKS_TOGETHER = 200

TaskId = tuple[int, str]
Point = tuple[float, int, int]
"""A moment, and the rows that a task had read and written by then."""


@dataclass(slots=True)
class Rate:
    """How far a task is now, and was a while ago.  There are thousands: three points must do."""

    attempt: int
    start: Point
    middle: Point
    last: Point

    @classmethod
    def of(cls, now_s: float, held: TaskReport) -> "Rate":
        """Begin to count."""
        point = (now_s, held.read, held.written)
        return cls(held.attempt, point, point, point)

    def take(self, now_s: float, held: TaskReport) -> None:
        """Note how far a task is.  Another attempt counts from where it was restored."""
        before, point = self.last, (now_s, held.read, held.written)
        self.last = point
        if held.attempt != self.attempt or held.read < before[1]:
            self.attempt = held.attempt
            self.start = self.middle = point
        elif now_s - self.middle[0] >= RATE_S / 2:
            self.start, self.middle = self.middle, point

    def per_second(self) -> tuple[float, float]:
        """Return rows read and written a second."""
        (from_s, read, written), (to_s, read_now, written_now) = self.start, self.last
        if from_s == to_s:
            return 0.0, 0.0
        span_s = max(to_s - from_s, 0.001)
        return (read_now - read) / span_s, max(0.0, (written_now - written) / span_s)


@dataclass
class JobStatusView:
    """One incarnation of a job as this leader has seen it."""

    job: JobRecord
    checks: dict[int, CheckpointLog] = field(default_factory=dict)
    trails: dict[int, EventHistory] = field(default_factory=dict)
    pipelines: dict[int, PipelineRecord] = field(default_factory=dict)
    rates: dict[TaskId, Rate] = field(default_factory=dict)
    restarts: int = 0
    looks: int = 0
    """Counts updates: until it grows, nothing that is shown of this incarnation has changed."""

    @property
    def events(self) -> list[TimelineEvent]:
        """What happened to the job, its pipelines and tasks, the oldest first."""
        return events_of(self.trails)

    @property
    def started_s(self) -> float:
        """The date at which it first ran; 0 if that is not known."""
        told = self.trails.get(0, EventHistory()).events
        return next((e.at_s for e in told if (e.what, e.status) == ("job", "RUNNING")), 0.0)

    def rate(self) -> tuple[float, float]:
        """Return the rows read and written a second, over all tasks."""
        each = [r.per_second() for r in self.rates.values()]
        return sum(r for r, _ in each), sum(w for _, w in each)


class StatusBoard:
    """Everything that this master shows beyond what the records say."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.journal = Journal(clock)
        self._dirty: set[str] = set()
        self._stirred = asyncio.Event()
        self._grown = asyncio.Event()
        self._looked_s = 0.0
        self.term = 0
        self.version = 0
        self.lives: dict[str, JobStatusView] = {}
        self.gone: dict[str, JobRecord] = {}
        self.past: dict[str, JobStatusView] = {}
        self.stacks: OrderedDict[tuple[TaskKey, int], str] = OrderedDict()

    def failed(self, held: TaskReport) -> None:
        """Note where a failure came from, as a worker reports it."""
        self.stacks[held.key, held.attempt] = held.stack
        while len(self.stacks) > STACKS_KEPT:
            self.stacks.popitem(last=False)

    def stack(self, key: TaskKey, attempt: int) -> str:
        """Return where an attempt's failure came from; "" if this master does not know."""
        return self.stacks.get((key, attempt), "")

    def wrote(self, key: str) -> None:
        """Note that this master changed a record."""
        if key.startswith(("job/", "pipeline/")):
            self._dirty.add(key.split("/")[1])
        self._stirred.set()

    async def run(self, master: Master) -> None:
        """Look whenever something was written, and once a second, until cancelled."""
        while True:
            self.look(master)
            if self._dirty:
                await asyncio.sleep(0)  # a new leader has thousands to look at, and a lease to keep
                continue
            self._stirred.clear()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._stirred.wait()
                await asyncio.sleep(0)  # the keeper takes the new state in first
            except TimeoutError:
                pass

    async def changed(self, since: int, wait_s: float) -> int:
        """Return the present version, once it is another than `since` or after a while."""
        try:
            async with asyncio.timeout(wait_s):
                while self.version == since:
                    await self._grown.wait()
        except TimeoutError:
            pass
        return self.version

    def look(self, master: Master) -> None:
        """Take in what changed."""
        leader, now_s = master.leader, self._clock.now()
        if leader is None or not leader.loaded:
            if self.term:
                self.term, self.lives, self.gone, self.past = 0, {}, {}, {}
                self.journal.end()
                self._grow()
            return
        if leader.desk.number != self.term:
            self.term, self.lives, self.gone, self.past = leader.desk.number, {}, {}, {}
            self._dirty = set(leader.jobs)
            self.journal.begin(leader)
        due = now_s - self._looked_s >= LOOK_S
        if due:
            self._looked_s = now_s
            self._dirty |= set(leader.jobs) ^ set(self.lives)
            self._count(leader, now_s)
        dirty = set(islice(self._dirty, LOOKS_TOGETHER))
        self._dirty -= dirty
        for job in dirty:
            self._look_at(leader, job)
        if dirty or due:
            self._grow()

    def remembered(self, job: JobRecord) -> JobStatusView | None:
        """Return what this leader has seen of a buried incarnation of a job."""
        found = self.past.get(job.id)
        return found if found and found.job.incarnation == job.incarnation else None

    def _grow(self) -> None:
        self.version += 1
        self._grown.set()
        self._grown = asyncio.Event()

    def _look_at(self, leader: Leader, job: str) -> None:
        keeper = leader.jobs.get(job)
        if keeper is None:
            self.journal.gone(job)
            old = self.lives.pop(job, None)
            if old:
                old.rates = {}
                self.gone[job] = old.job
                self.past[job] = old
                for kept, most in ((self.gone, GONE_KEPT), (self.past, PAST_KEPT)):
                    while len(kept) > most:
                        del kept[next(iter(kept))]
            return
        sight = self.lives.get(job)
        if sight is None or sight.job.incarnation != keeper.state.incarnation:
            self.gone.pop(job, None)
            self.past.pop(job, None)
            sight = self.lives[job] = JobStatusView(keeper.state)
        sight.job, sight.trails[0] = keeper.state, keeper.trail
        sight.looks += 1
        self.journal.look_at(keeper)
        for part in keeper.pipelines.values():
            self._look_at_part(sight, part)

    def _look_at_part(self, sight: JobStatusView, keeper: PipelineKeeper) -> None:
        pipeline, number = keeper.state, keeper.state.number
        before = sight.pipelines.get(number)
        if before is pipeline:
            return
        checks = sight.checks.get(number)
        if checks is None:
            checks = sight.checks[number] = CheckpointLog()
            checks.begin(pipeline, keeper.trail, self.term)
        checks.take(pipeline, keeper.trail)
        sight.trails[number] = keeper.trail
        latest = pipeline.checkpoints.latest
        gathering = keeper.gathering
        if gathering and latest and gathering.number == latest.number and gathering.complete:
            checks.written = tuple(w for a in gathering.acks for w in a.counts.written)
        old = before.tasks if before else ()
        anew = sum(n.restarts - o.restarts for o, n in zip(old, pipeline.tasks, strict=False))
        sight.restarts += anew if before else sum(t.restarts for t in pipeline.tasks)
        checks.restored += anew if latest else 0
        sight.pipelines[number] = pipeline

    def _count(self, leader: Leader, now_s: float) -> None:
        """Take in how far each running task is, from the last heartbeats."""
        running: dict[str, dict[TaskId, Rate]] = {}
        for seen in leader.crew.seen.values():
            for held in seen.hello.held:
                sight = self.lives.get(held.key.job)
                if sight and sight.job.incarnation == held.key.incarnation:
                    one = (held.key.pipeline, held.key.task)
                    rate = sight.rates.get(one)
                    if rate:
                        rate.take(now_s, held)
                    else:
                        rate = Rate.of(now_s, held)
                    running.setdefault(held.key.job, {})[one] = rate
        for job, sight in self.lives.items():
            sight.rates = running.get(job, {})
            sight.looks += 1
