"""Say what a job waits for, from whom, since when, and what happens next.  Pure.

What is owed is data, so this only reads: the records, what workers report to the leader, and why
tasks have no place.  Every status yields a sentence.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace

from holdfast.core.checkpoint import CheckpointKind, Pending
from holdfast.core.commit import CommitStatus
from holdfast.core.completion import CompletionStatus
from holdfast.core.former_commits import next_of
from holdfast.core.job import TERMINAL, JobRecord, JobStatus
from holdfast.core.pipeline import ACTIVE, OVER, PipelineRecord
from holdfast.core.task import TaskRecord, TaskStatus
from holdfast.master.health import Health, HealthReport, health_word, owed_commit
from holdfast.master.ports import MasterSettings
from holdfast.master.unfinished import Unfinished, left_before
from holdfast.master.unfinished import lines as left_lines

SAID_AT_ONCE = 5
"""How many tasks one sentence names."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The place in the queue of a job that has not started, and which jobs hold the slots.

    `place` counts from 1; 0: it does not wait to start.  `holders` are jobs with their slots.
    `too_large` says why the connected workers could not carry it even if they were empty.
    """

    place: int = 0
    length: int = 0
    holders: tuple[tuple[str, int], ...] = ()
    too_large: str = ""


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """All that is known of a job at one moment.

    `since` are dates, by `task ...` and similar names.  `buried`: only a line of history is left.
    `troubles` say why the owed commit, or its listeners, had to be asked again, by pipeline.
    `moves`: where tasks of draining workers move, or why they stay.
    """

    job: JobRecord
    pipelines: tuple[PipelineRecord, ...]
    settings: MasterSettings
    now_s: float
    reports: Mapping[int, HealthReport] = field(default_factory=dict)
    waits: Mapping[tuple[int, str], str] = field(default_factory=dict)
    missing: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    connected: frozenset[str] = frozenset()
    holding: tuple[str, ...] = ()
    since: Mapping[str, float] = field(default_factory=dict)
    buried: bool = False
    queue: Queue = Queue()
    troubles: Mapping[int, str] = field(default_factory=dict)
    moves: Mapping[tuple[int, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing a job waits for.  `for_s`: how long by now, which no date of another machine says.

    `since_s` is the date, for people to read.
    """

    what: str
    whom: str
    since_s: float | None
    next: str
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class PastFailure:
    """Why an attempt ended."""

    pipeline: int
    task: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a job waits for, and what went wrong so far.

    `unfinished` are the commits that it left at its end, and `finish` says what can be done.
    """

    job: str
    name: str
    status: str
    health: str
    summary: str
    waits: tuple[Wait, ...]
    failures: tuple[PastFailure, ...]
    unfinished: tuple[Unfinished, ...] = ()
    finish: tuple[str, ...] = ()


def explain(scene: JobSnapshot) -> Explanation:
    """Explain a job."""
    found = _ended(scene) if scene.job.status in TERMINAL else _living(scene)
    waits = tuple(_timed(scene, wait) for wait in found)
    failures = tuple(
        PastFailure(p.number, f.task, f.attempt, f.reason)
        for p in scene.pipelines
        for f in p.failures
    )
    job = scene.job
    return Explanation(
        job.id, job.name, job.status.value, health_word(job.status, scene.reports)[0],
        _summary(scene, waits), waits,
        failures,
    )  # fmt: skip


def as_text(explained: Explanation, clock: Callable[[float], str]) -> str:
    """Return an explanation for people to read; `clock` writes a date."""
    health = f", {explained.health}" if explained.health not in ("", Health.OK) else ""
    lines = [f"Job {explained.job} ({explained.name}) is {explained.status}{health}."]
    lines.append(explained.summary)
    for wait in explained.waits:
        lines.append(f"- {wait.what}")
        if wait.whom:
            lines.append(f"    from whom: {wait.whom}")
        if wait.since_s and wait.for_s is not None:
            lines.append(f"    since: {clock(wait.since_s)} ({_for(wait.for_s)})")
        lines.append(f"    next: {wait.next}")
    lines += left_lines(explained.unfinished, explained.finish)
    if explained.failures:
        lines.append("Last failures:")
    for failure in explained.failures:
        task = f"task {failure.task}, attempt {failure.attempt}: " if failure.task else ""
        lines.append(f"- pipeline {failure.pipeline}, {task}{failure.reason}")
    return "\n".join(lines)


def _timed(scene: JobSnapshot, wait: Wait) -> Wait:
    """Return it with how long it lasts, by the dates of this leader where nothing is measured."""
    if wait.for_s is not None or not wait.since_s:
        return wait
    return replace(wait, for_s=max(0.0, scene.now_s - wait.since_s))


def _summary(scene: JobSnapshot, waits: tuple[Wait, ...]) -> str:
    job = scene.job
    late = [r for _, r in sorted(scene.reports.items()) if r.health is not Health.OK]
    if job.status in (JobStatus.FAILED, JobStatus.FAILING):
        return f"It failed: {job.reason or 'no reason was recorded'}"
    if late:
        worst = max(late, key=lambda r: (r.health is Health.STALLED, r.unseen, r.age_s))
        if worst.unseen or worst.ill:
            stops = "It was asked to stop. " if job.status is JobStatus.CANCELING else ""
            return f"{stops}{worst.reason}"
        what = "Its last checkpoint is {} old." if worst.checkpoint else "No checkpoint for {}."
        return f"{what.format(_for(worst.age_s))} {worst.reason}"
    sentences = {
        JobStatus.PENDING: "It has not started.",
        JobStatus.RUNNING: "It runs.",
        JobStatus.CANCELING: "It was asked to stop; only commits that are owed are finished.",
        JobStatus.DOING_SAVEPOINT: "It takes a savepoint and then stops.",
        JobStatus.FINISHED: "It read its input to the end, and every row is committed.",
        JobStatus.CANCELED: job.reason or "It was cancelled.",
        JobStatus.SAVEPOINT_DONE: "It was stopped with a savepoint, from which it can be restored.",
    }
    said = sentences[job.status]
    note = f" {job.reason}" if job.reason and job.status is JobStatus.RUNNING else ""
    return f"{said}{note}" if waits else f"{said}{note} It waits for nothing."


def _ended(scene: JobSnapshot) -> Iterator[Wait]:
    job = scene.job
    if scene.buried:
        return
    if scene.holding:
        yield Wait(
            "Its cleanup waits until no worker holds a task of it any more.",
            f"worker {', '.join(scene.holding)}",
            job.ended_s or None,
            "The worker is asked to stop at each of its heartbeats; one that stays silent for"
            f" {scene.settings.worker_lost_s:g} s counts as gone.",
        )
        return
    yield Wait(
        f"Its id stays taken for about {scene.settings.tombstone_s:g} s after its end, so that"
        " late messages find no other worker under it.",
        "",
        job.ended_s or None,
        "What it staged and never committed is removed, then its records; a line of history stays.",
    )


def _living(scene: JobSnapshot) -> Iterator[Wait]:
    for pipeline in scene.pipelines:
        if pipeline.status in OVER:
            continue
        before = yield from _commits(scene, pipeline)
        if pipeline.status is not ACTIVE or pipeline.owes_former:
            continue
        tasks = yield from _tasks(scene, pipeline)
        yield from _leaving(scene, pipeline)
        if not tasks:
            yield from _checkpoint(scene, pipeline, quiet=before)


def _commits(scene: JobSnapshot, pipeline: PipelineRecord) -> Generator[Wait, None, bool]:
    """Yield the commit that is owed; return whether there is one."""
    commits = pipeline.commits
    if commits.status is CommitStatus.SETTLED and not pipeline.owes_former:
        return False
    owed, report = owed_commit(pipeline), scene.reports.get(pipeline.number)
    trouble = scene.troubles.get(pipeline.number)
    first = next_of(pipeline.formers) if pipeline.owes_former else None
    if first:
        what, whom = left_before(pipeline, first[1], trouble)
    elif commits.status is CommitStatus.COMMITTING:
        what = f"Pipeline {pipeline.number}: checkpoint {commits.waiting[0].number} is complete"
        what += " and is being committed."
        others = len(commits.waiting) - 1
        what += f" {others} more wait behind it." if others else ""
        what += f" It is not visible yet; what it waits for is: {trouble}" if trouble else ""
        whom = "sink " + ", ".join(pipeline.sinks)
    else:
        what = f"Pipeline {pipeline.number}: the listeners of commit {commits.through} are running."
        what += f" Its rows are visible; what fails is: {trouble}" if trouble else ""
        whom = "the listeners of sink " + ", ".join(pipeline.sinks)
    at_s = owed.at_s or None if owed else None
    for_s = report.commit_age_s if report and at_s else None
    yield Wait(what, whom, at_s, "It is tried again until it is done.", for_s)
    return True


def _tasks(scene: JobSnapshot, pipeline: PipelineRecord) -> Generator[Wait, None, bool]:
    """Yield why tasks do not run; return whether there are such."""
    reasons: dict[str, list[TaskRecord]] = {}
    for task in pipeline.tasks:
        if task.status is TaskStatus.WAITING:
            why = scene.waits.get((pipeline.number, task.id), "it is being placed")
            reasons.setdefault(why, []).append(task)
    for why, tasks in reasons.items():
        yield Wait(
            f"{_named(tasks)} of pipeline {pipeline.number} {_has(tasks)} no worker: {why}."
            + _standing(scene.queue),
            _from_whom(why, scene.queue),
            _first_seen(scene, pipeline, tasks),
            _placing(scene.queue),
        )
    placed = [t for t in pipeline.tasks if t.status is TaskStatus.PLACED and t.place]
    for task in placed:
        assert task.place
        there = task.place.incarnation in scene.connected
        yield Wait(
            f"Task {task.id} of pipeline {pipeline.number} is placed and has not started"
            f" (attempt {task.attempt}).",
            f"worker {task.place.worker}" + ("" if there else ", which is not in contact"),
            _first_seen(scene, pipeline, [task]),
            f"The order is repeated; a worker that is silent for {scene.settings.worker_lost_s:g}"
            " s loses the task to another.",
        )
    return bool(reasons or placed)


def _leaving(scene: JobSnapshot, pipeline: PipelineRecord) -> Iterator[Wait]:
    """Yield the tasks whose workers are draining."""
    for task in pipeline.tasks:
        said = scene.moves.get((pipeline.number, task.id))
        if said and task.place:
            yield Wait(
                f"Task {task.id} of pipeline {pipeline.number} runs on worker {task.place.worker},"
                f" which is draining. It {said}.",
                f"worker {task.to.worker}" if task.to else "", None,
                "It runs on meanwhile. Going on elsewhere costs no retry.",
            )  # fmt: skip


def _checkpoint(scene: JobSnapshot, pipeline: PipelineRecord, *, quiet: bool) -> Iterator[Wait]:
    pending = pipeline.checkpoints.pending
    if pending:
        yield _pending(scene, pipeline, pending)
    elif quiet or pipeline.final is not None:
        return
    elif pipeline.completion.status is CompletionStatus.ENDED:
        yield Wait(
            f"Pipeline {pipeline.number} is at the end of its input.", "the leader", None,
            "The final checkpoint is taken, committed, and the pipeline is finished.",
        )  # fmt: skip
    else:
        yield _reading(scene, pipeline)


def _pending(scene: JobSnapshot, pipeline: PipelineRecord, pending: Pending) -> Wait:
    missing = scene.missing.get(pipeline.number, ())
    places = {t.id: t.place.worker for t in pipeline.tasks if t.place}
    whom = ", ".join(f"task {t} on worker {places.get(t, '?')}" for t in missing[:SAID_AT_ONCE])
    timeout_s = pipeline.policy.timeout_s or scene.settings.timeout_s
    answers = "1 answer" if len(missing) == 1 else f"{len(missing)} answers"
    kind = "" if pending.kind is CheckpointKind.PERIODIC else f" ({pending.kind.value})"
    return Wait(
        f"Checkpoint {pending.number}{kind} of pipeline {pipeline.number} waits for"
        f" {answers if missing else 'its content to be stored'}.",
        whom or "the leader",
        scene.since.get(f"checkpoint {pipeline.number}"),
        f"Barriers are sent again; after {timeout_s:g} s it is given up and the next one is taken."
        + (_retries(pipeline) if pipeline.checkpoints.failed_in_a_row else ""),
    )


def _retries(pipeline: PipelineRecord) -> str:
    checkpoints = pipeline.checkpoints
    return f" {checkpoints.failed_in_a_row} failed in a row: {checkpoints.last_failure}."


def _reading(scene: JobSnapshot, pipeline: PipelineRecord) -> Wait:
    completion = pipeline.completion
    ended = len({r.source for r in completion.ready})
    workers = sorted({t.place.worker for t in pipeline.tasks if t.place})
    latest, report = pipeline.checkpoints.latest, scene.reports.get(pipeline.number)
    interval_s = pipeline.policy.interval_s or scene.settings.interval_s
    if pipeline.policy.periodic:
        soon = f"A checkpoint is taken every {interval_s:g} s and then committed."
    else:
        soon = "When all sources have ended, the final checkpoint is taken and committed."
    # A source that never ends has no place in a count of ends, so none is begun for it.
    count = f"{ended} of {len(completion.sources)} sources {'is' if ended == 1 else 'are'}"
    said = f"reads: {count} at the end" if ended else "reads its input"
    said = "continues when its worker's Spark does" if report and report.ill else said
    return Wait(
        f"Pipeline {pipeline.number} {said}.",
        f"worker {', '.join(workers)}" if workers else "",
        (latest.at_s if latest else pipeline.since_s) or None,
        soon,
        report.age_s if report else None,
    )


def _named(tasks: list[TaskRecord]) -> str:
    names = ", ".join(t.id for t in tasks[:SAID_AT_ONCE])
    more = f" and {len(tasks) - SAID_AT_ONCE} more" if len(tasks) > SAID_AT_ONCE else ""
    return f"Task{'s' if len(tasks) > 1 else ''} {names}{more}"


def _has(tasks: list[TaskRecord]) -> str:
    return "have" if len(tasks) > 1 else "has"


def _standing(queue: Queue) -> str:
    if not queue.place:
        return ""
    return f" It is number {queue.place} of {queue.length} jobs that wait to start."


def _placing(queue: Queue) -> str:
    if queue.too_large:
        return (
            f"The connected workers could not carry it even if they were empty: {queue.too_large}."
            " It is placed when a worker joins that can; jobs submitted later wait behind it."
            " Start such a worker, or cancel the job."
        )
    return (
        "It is placed as soon as it fits; a job that has not started starts whole, in the order"
        " of submission."
    )


def _from_whom(why: str, queue: Queue) -> str:
    if "connected" in why:
        return "a worker that connects"
    held = [f"job {job} ({slots})" for job, slots in queue.holders[:SAID_AT_ONCE]]
    more = len(queue.holders) - SAID_AT_ONCE
    whom = "slots held by " + ", ".join(held) + (f" and {more} more" if more > 0 else "")
    if not held:
        whom = "jobs that run now, for their slots"
    if "behind job" in why:
        ahead = why.partition("behind job ")[2].partition(",")[0]
        return f"job {ahead}" + (f"; {whom}" if held else "")
    return whom


def _first_seen(
    scene: JobSnapshot, pipeline: PipelineRecord, tasks: list[TaskRecord]
) -> float | None:
    keys = [f"task {pipeline.number} {t.id}" for t in tasks]
    known = [scene.since[k] for k in keys if k in scene.since]
    if all(t.attempt == 1 and t.status is TaskStatus.WAITING for t in tasks):
        return scene.job.since_s or None
    return min(known, default=None)


def _for(seconds: float) -> str:
    seconds = max(0.0, seconds)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
