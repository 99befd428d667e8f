"""What happened to a pipeline's checkpoints and to a job's states, in order, with dates.

The keepers tell it (`master/event_log.py`), so that the next leader knows it too; here it gets the
shape in which it is shown.  What is counted is counted since this leader began.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.api.views import CheckpointView, TimelineEvent
from holdfast.core.checkpoint import Totals
from holdfast.core.gather import WrittenRows
from holdfast.core.pipeline import PipelineRecord
from holdfast.master.event_log import CheckpointStart, EventHistory
from holdfast.plan.masking import masked_text


@dataclass
class CheckpointLog:
    """The checkpoints of one pipeline."""

    trail: EventHistory = field(default_factory=EventHistory)
    written: tuple[WrittenRows, ...] = ()
    triggered: int = 0
    completed: int = 0
    failed: int = 0
    restored: int = 0
    committed: Totals = field(default_factory=Totals)
    seconds: float = 0.0
    counted: int = 0

    @property
    def under(self) -> CheckpointStart | None:
        """The one that is on its way."""
        return self.trail.under

    @property
    def done(self) -> list[CheckpointView]:
        """Those that are over, the oldest first."""
        return [
            CheckpointView(
                c.number, c.kind, "COMPLETED" if c.complete else "FAILED", c.started_s, c.ended_s,
                c.took_s, c.size, c.rows, c.bytes, masked_text(c.reason), c.term,
            )
            for c in self.trail.checkpoints
        ]  # fmt: skip

    def begin(self, pipeline: PipelineRecord, trail: EventHistory, term: int) -> None:
        """Start with what is known; nothing of a former term is counted."""
        self.counted = max((c.number for c in trail.checkpoints if c.term != term), default=0)
        self.take(pipeline, trail)

    def take(self, pipeline: PipelineRecord, trail: EventHistory) -> None:
        """Take in the record and its trail."""
        fresh = [c for c in trail.checkpoints if c.number > self.counted]
        self.completed += sum(c.complete for c in fresh)
        self.failed += sum(not c.complete for c in fresh)
        self.seconds += sum(c.took_s or 0.0 for c in fresh if c.complete)
        self.triggered = self.completed + self.failed + (trail.under is not None)
        self.counted = max([self.counted, *(c.number for c in fresh)])
        self.trail = trail
        through = pipeline.commits.through
        shown = next((c for c in pipeline.checkpoints.kept if c.number == through), None)
        if shown:
            self.committed = shown.totals


def events_of(trails: Mapping[int, EventHistory]) -> list[TimelineEvent]:
    """Return what happened to a job and its pipelines, the oldest first; 0 is the job itself."""
    found = [
        TimelineEvent(
            e.at_s, e.what, e.status, number, e.task, e.attempt, e.worker, e.term, e.reason
        )
        for number, trail in sorted(trails.items())
        for e in trail.events
    ]
    return sorted(found, key=lambda e: e.at_s)
