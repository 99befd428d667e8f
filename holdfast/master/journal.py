"""What a leading master logs about its jobs: every change, once, with its date.

It decides nothing; the records are the truth.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import is_
from typing import Any

from holdfast.core.pipeline import PipelineRecord
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader
from holdfast.master.ports import Clock

log = logging.getLogger("holdfast")


def say(message: str, **about: object) -> None:
    """Write a line to the log, with its facts."""
    log.info(message, extra={"about": about})


@dataclass
class _Seen:
    """One fact of a job as it was last seen, and the date at which it became so."""

    value: object
    since_s: float


@dataclass
class _Life:
    """What was seen of one incarnation of a job."""

    incarnation: str
    facts: dict[str, _Seen] = field(default_factory=dict)
    records: tuple[object, ...] = ()


class Journal:
    """The log of one master's jobs.  `StatusBoard` calls it when a record has changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lives: dict[str, _Life] = {}
        self._former: set[str] = set()
        self._term = 0

    def begin(self, leader: Leader) -> None:
        """Note that this master leads.  Another leader has logged the jobs that it finds."""
        self._term, self._lives, self._former = leader.desk.number, {}, set(leader.jobs)
        say("leading", term=self._term, jobs=len(leader.jobs))
        for job, reason in leader.quarantined.items():
            log.error("a job is unreadable: %s", reason, extra={"about": {"job_id": job}})

    def end(self) -> None:
        """Note that this master no longer leads."""
        say("no longer leading", term=self._term)
        self._lives = {}

    def gone(self, job: str) -> None:
        """Note that a job is buried."""
        if self._lives.pop(job, None):
            say("job is gone", job_id=job)

    def since(self, job: str) -> dict[str, float]:
        """Return since when each fact of a job is so, as far as this master has seen it."""
        life = self._lives.get(job)
        return {key: seen.since_s for key, seen in life.facts.items()} if life else {}

    def look_at(self, keeper: JobKeeper) -> None:
        """Log what has changed.  A new leader logs the state of each job, not of each task.

        Jobs that were over when it came are no news: the leader that ended them has logged it.
        """
        job = keeper.state
        new = job.id in self._former
        self._former.discard(job.id)
        life = self._lives.get(job.id)
        if life is None or life.incarnation != job.incarnation:
            life = self._lives[job.id] = _Life(job.incarnation)
        if keeper.terminal and (new or (life.records and life.records[0] is job)):
            life.records = life.records or (job,)
            return  # it never changes again
        records = (job, *(part.state for part in keeper.pipelines.values()))
        if len(records) == len(life.records) and all(map(is_, records, life.records)):
            return
        known = {r.number: r for r in life.records if isinstance(r, PipelineRecord)}
        life.records = records
        about: dict[str, Any] = {"status": job.status.value}
        if job.reason:
            about["reason"] = job.reason
        self._note(life, job.id, "job", job.status, f"job is {job.status}", about)
        for part in keeper.pipelines.values():
            for key, value, message, facts in _facts(part.state, known.get(part.state.number)):
                usual = new and key.startswith(("pipeline", "task"))
                self._note(life, job.id, key, value, "" if usual else message, facts)

    def _note(
        self, life: _Life, job: str, key: str, value: object, message: str, about: dict[str, Any]
    ) -> None:
        before = life.facts.get(key)
        if before and before.value == value:
            return
        life.facts[key] = _Seen(value, self._clock.date())
        if message:
            say(message, job_id=job, **about)


def _facts(
    pipeline: PipelineRecord, before: PipelineRecord | None
) -> Iterator[tuple[str, object, str, dict[str, Any]]]:
    """Yield what is worth a line: key, value, sentence (empty: no line), facts.

    Tasks that stand as before are left out: a checkpoint changes none of them.
    """
    number = pipeline.number
    part: dict[str, Any] = {"pipeline": number}
    yield f"pipeline {number}", pipeline.status, f"pipeline is {pipeline.status}", part
    for task in pipeline.tasks if not before or before.tasks is not pipeline.tasks else ():
        facts = {**part, "task": task.id, "attempt": task.attempt}
        if task.place:
            facts["worker"] = task.place.worker
        value = (task.status, task.attempt, task.place)
        yield f"task {number} {task.id}", value, f"task is {task.status}", facts
    checkpoints = pipeline.checkpoints
    pending = checkpoints.pending.number if checkpoints.pending else 0
    yield f"checkpoint {number}", pending, "", part
    failed = (checkpoints.failed_in_a_row, checkpoints.last_failure)
    sentence = f"a checkpoint failed: {failed[1]}" if failed[0] else ""
    yield f"checkpoint failure {number}", failed, sentence, part
    last = pipeline.failures[-1] if pipeline.failures else None
    sentence = f"task failed: {last.reason}" if last else ""
    facts = {**part, "task": last.task, "attempt": last.attempt} if last else part
    yield f"failure {number}", (len(pipeline.failures), last), sentence, facts
