"""J. Liveness: once the faults have ended, everything that was begun comes to its end."""

from collections.abc import Iterator
from itertools import pairwise

from holdfast.core.job import JobStatus
from holdfast.core.pipeline import ACTIVE, PipelineRecord
from holdfast.core.task import TaskStatus
from tests.oracle.events import Boot, Client, End, Fault, Left, Start, Stuck, Write
from tests.oracle.story import Part, Story, part_of

SLACK_S = 3.0
"""What a request, a resend and a campaign may add to a bound."""


def rest(story: Story) -> Iterator[str]:
    """L3: a run comes to rest.  Errors that nobody expected are told here too (E)."""
    for stuck in story.of(Stuck):
        yield stuck.why


def leaders(story: Story) -> Iterator[str]:
    """L1: after the faults a leader is there within two leases."""
    healed_s = story.healed_s
    if healed_s is None:
        return
    bound_s = 2 * story.setting.lease_s + SLACK_S
    led, since_s = False, healed_s
    for write in story.of(Write):
        if write.key == "leader":
            if write.at > healed_s and not led and write.at - since_s > bound_s:
                yield f"L1 nobody led for {write.at - since_s:.1f} s after the faults"
            led, since_s = not write.deleted, max(write.at, healed_s)
    over_s = story.events[-1].at
    if not led and over_s - since_s > bound_s:
        yield f"L1 nobody led for {over_s - since_s:.1f} s after the faults"


def checkpointing(story: Story) -> Iterator[str]:
    """L2 I36: after the faults a pipeline that runs begins and completes checkpoints in time.

    Failed ones do not stop the timer.
    """
    healed_s = story.healed_s
    if healed_s is None:
        return
    setting = story.setting
    begin_s = setting.interval_s + 2 * setting.lease_s + setting.worker_lost_s + SLACK_S
    complete_s = begin_s + 2 * setting.timeout_s
    idle: dict[Part, float] = {}
    incomplete: dict[Part, float] = {}
    for write, records in story.walk(Write):
        if not isinstance(write.record, PipelineRecord):
            continue
        part, old, new = (
            part_of(write.record),
            records.pipeline(part_of(write.record)),
            write.record,
        )
        at = max(write.at, healed_s)
        if part in idle and at - idle.pop(part) > begin_s:
            yield f"I36 no checkpoint of {part.job} began though it ran"
        if _runs(new) and not new.checkpoints.pending:
            idle[part] = at
        moved = old is None or new.checkpoints.latest != old.checkpoints.latest
        since_s = incomplete.setdefault(part, at) if _runs(new) else incomplete.pop(part, at)
        if at - since_s > complete_s and (old is None or _runs(old)):
            yield f"L2 no checkpoint of {part.job} completed for {at - since_s:.1f} s"
        if moved or not _runs(new):
            incomplete.pop(part, None)


def _runs(state: PipelineRecord) -> bool:
    """Say whether checkpoints of this pipeline are due."""
    saved = state.savepoint and state.savepoint.number is not None
    running = all(t.status is TaskStatus.RUNNING for t in state.tasks)
    return state.status is ACTIVE and running and state.final is None and not saved


def wishes(story: Story) -> Iterator[str]:
    """L4: every cancel and every savepoint that was accepted comes to something."""
    if not story.of(Stuck):
        return
    for life, jobs in story.jobs.items():
        if jobs[-1].status in (JobStatus.CANCELING, JobStatus.DOING_SAVEPOINT):
            yield f"L4 {life.job} stays {jobs[-1].status}"


def cleanup(story: Story) -> Iterator[str]:
    """L5 L11: after the end no record waits for its cleanup and no staged file for its sweep."""
    for left in story.of(Left):
        if left.thing.startswith("key "):
            yield f"L5 never cleaned up: {left.thing}"
        elif left.thing.startswith("staged "):
            yield f"L11 never removed: {left.thing}"


def tasks(story: Story) -> Iterator[str]:
    """L6: when all is over no worker runs anything."""
    if story.of(Stuck) or story.healed_s is None:
        return
    now = {b.name: b.known_as for b in story.of(Boot)}
    running = {
        (s.worker, s.job, s.incarnation, s.task, s.attempt)
        for s in story.of(Start)
        if s.worker in now.values()
    }
    for end in story.of(End):
        running.discard((end.worker, end.job, end.incarnation, end.task, end.attempt))
    for worker, job, _, task, attempt in sorted(running):
        yield f"L6 {worker} still runs attempt {attempt} of {task} of {job}"


def requests(story: Story) -> Iterator[str]:
    """L7: after the faults every request gets a definite answer in time."""
    wanted: dict[tuple[str, str, str], float] = {}
    for event in story.of(Client):
        request = (event.job, event.incarnation, event.what)
        if event.did == "wants":
            wanted[request] = max(event.at, story.healed_s or event.at)
        elif event.did in ("was answered", "was told it is over"):
            wanted.pop(request, None)
    bound_s = 2 * story.setting.lease_s + 3 * SLACK_S
    for (job, _, what), since_s in wanted.items():
        if story.events[-1].at - since_s > bound_s:
            yield f"L7 {what} of {job} was never answered"


def restarts(story: Story) -> Iterator[str]:
    """L9: attempts that fail are bounded, and the reason is there to see."""
    for part, states in story.pipelines.items():
        last = states[-1]
        if last.retries > last.retry_times + 1:
            yield f"L9 {part.job} was retried {last.retries} times, {last.retry_times} are allowed"
        if any(new.retries < old.retries for old, new in pairwise(states)):
            yield f"L9 the retries of {part.job} were counted anew"
        if any(t.restarts for t in last.tasks) and not last.failures:
            yield f"L9 a task of {part.job} was restarted and nobody can say why"


def outages(story: Story) -> Iterator[str]:
    """L10: an outage of the store, and nothing else, fails no job."""
    faults = [f.fault for f in story.of(Fault)]
    if story.setting.lossy or not set(faults) <= {"store down", "heal"}:
        return
    for life, jobs in story.jobs.items():
        if jobs[-1].status is JobStatus.FAILED and "store down" in faults:
            yield f"L10 {life.job} failed because the store was away"


CHECKS = (
    rest, leaders, checkpointing, wishes, cleanup, tasks, requests, restarts, outages,
)  # fmt: skip
