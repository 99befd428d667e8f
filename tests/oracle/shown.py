"""J. What people are shown is true: ages are neither invented nor hidden, whoever leads by now."""

from collections.abc import Iterator

from holdfast.core.pipeline import PipelineRecord
from holdfast.master.health import STALLED_S, STALLED_SHARE, Health, owed_commit
from tests.oracle.events import Blob, Shown, Write
from tests.oracle.story import Part, Story, latest, part_of

SLACK_S = 2.0
"""How long an answer, a write and a look may take between them."""


def ages(story: Story) -> Iterator[str]:
    """I71: the age that is shown is that of the durable checkpoint: never more, and hardly less.

    Less only by the time that nobody could measure, because leaders changed.
    """
    stored: dict[str, float] = {}
    done: dict[tuple[Part, int], tuple[float, float]] = {}
    unmeasured = _Unmeasured()
    for event, records in story.walk(Write, Blob, Shown):
        unmeasured.take(event)
        if isinstance(event, Blob):
            stored[event.name] = event.at
        elif isinstance(event, Write) and isinstance(event.record, PipelineRecord):
            last, old = event.record.checkpoints.latest, records.pipeline(part_of(event.record))
            if last and (old is None or latest(old) < last.number):
                first_s = stored.get(last.blob, event.at)
                done[(part_of(event.record), last.number)] = (first_s, event.at)
        elif isinstance(event, Shown):
            part = Part(event.job, event.incarnation, event.pipeline)
            pairs = ((event.checkpoint, event.age_s), (event.commit, event.commit_age_s))
            for number, age_s in pairs:
                known = done.get((part, number))
                if known is None:
                    continue
                if age_s > event.at - known[0] + SLACK_S:
                    yield f"I71 checkpoint {number} of {part.job} is shown older than it is"
                if age_s < event.at - known[1] - unmeasured.since(known[0]) - SLACK_S:
                    yield f"I71 checkpoint {number} of {part.job} is shown younger than it is"


def stalled(story: Story) -> Iterator[str]:
    """I72: a job whose commit or listeners do not get through is shown STALLED, with the reason."""
    interval_s = story.setting.interval_s
    bound_s = interval_s + max(STALLED_SHARE * interval_s, STALLED_S) + SLACK_S
    owed: dict[Part, tuple[int, float]] = {}
    unmeasured = _Unmeasured()
    for event, records in story.walk(Write, Shown):
        unmeasured.take(event)
        if isinstance(event, Write) and isinstance(event.record, PipelineRecord):
            part, now = part_of(event.record), owed_commit(event.record)
            before = owed.get(part, (0, 0.0))
            if now is None:
                owed.pop(part, None)
            elif now.number != before[0]:
                owed[part] = (now.number, event.at)
        elif isinstance(event, Shown):
            part = Part(event.job, event.incarnation, event.pipeline)
            number, since_s = owed.get(part, (0, event.at))
            waits_s = event.at - since_s - unmeasured.since(since_s)
            told = event.health == Health.STALLED and event.reason
            if number and records.pipeline(part) and waits_s > bound_s and not told:
                yield f"I72 {part.job} is shown {event.health}, and {number} is not visible"


class _Unmeasured:
    """The times between the last word of a leader and the next leader's, which nobody may know."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []
        self._told_s = 0.0

    def take(self, event: object) -> None:
        """Take in an event."""
        if isinstance(event, Write) and event.key == "clock":
            self._told_s = event.at
        elif isinstance(event, Write) and event.key == "leader" and not event.deleted:
            self._spans.append((self._told_s, event.at + SLACK_S))

    def since(self, since_s: float) -> float:
        """Return how much of the time since a moment may be missing."""
        return sum(to_s - max(from_s, since_s) for from_s, to_s in self._spans if to_s > since_s)


CHECKS = (ages, stalled)
