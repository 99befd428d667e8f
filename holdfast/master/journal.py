"""What a leading master says about its jobs: every change that is seen, once, with its date.

It looks a few times a second and decides nothing; the records are the truth.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import is_
from typing import Any

from holdfast.core.pipeline import PipelineRecord
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader
from holdfast.master.master import Master
from holdfast.master.ports import Clock
from holdfast.master.wait import unhurried

log = logging.getLogger("holdfast")

LOOK_S = 0.25


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
    """The log of one master's jobs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lives: dict[str, _Life] = {}
        self._term = 0

    async def run(self, master: Master) -> None:
        """Look again and again, until cancelled."""
        while True:
            leader = master.leader
            if leader is None and self._term:
                say("no longer leading", term=self._term)
                self._term, self._lives = 0, {}
            elif leader and leader.loaded:
                await self.look(leader)
            await self._clock.sleep(LOOK_S)

    async def look(self, leader: Leader) -> None:
        """Say what has changed since the last look."""
        new = leader.desk.number != self._term
        if new:
            self._term, self._lives = leader.desk.number, {}
            say("leading", term=self._term, jobs=len(leader.jobs))
            for job, reason in leader.quarantined.items():
                log.error("a job is unreadable: %s", reason, extra={"about": {"job_id": job}})
        for gone in set(self._lives) - set(leader.jobs):
            say("job is gone", job_id=gone)
            del self._lives[gone]
        async for keeper in unhurried(list(leader.jobs.values())):
            self._look_at(keeper, new)

    def since(self, job: str) -> dict[str, float]:
        """Return since when each fact of a job is so, as far as this master has seen it."""
        life = self._lives.get(job)
        return {key: seen.since_s for key, seen in life.facts.items()} if life else {}

    def _look_at(self, keeper: JobKeeper, new: bool) -> None:
        """Look at one job.  A new leader logs the status of each job, not each task of a thousand.

        Those that were over when it came are no news: the leader that ended them has logged it.
        """
        job = keeper.state
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
