"""The records that a leader keeps: jobs, their pipelines, ended incarnations, saved states.

They are loaded when a term begins, and each has a keeper from then on.
"""

import asyncio
from collections.abc import Iterator
from functools import partial

from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.errors import UserError
from holdfast.master.drains import Drains
from holdfast.master.health import newest
from holdfast.master.job_keeper import JobKeeper, load_trails
from holdfast.master.leader_store import LeaderStore
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.records import (
    GRAVE,
    R,
    RecordUnreadable,
    decode,
    grave_key,
    job_key,
    pipeline_key,
)
from holdfast.master.saved_states import Vault
from holdfast.master.wait import unhurried
from holdfast.master.worker_registry import Roster, WorkerRegistry
from holdfast.store.contract import Item
from holdfast.wire.messages import TaskKey


class Cabinet:
    """All records of one term, and their keepers."""

    def __init__(self, desk: LeaderStore) -> None:
        self.desk = desk
        self.jobs: dict[str, JobKeeper] = {}
        self.graves: dict[tuple[str, str], JobKeeper] = {}
        self.vault = Vault(desk, self._lives, self._finishes)
        self.crew = WorkerRegistry(desk.ports.clock.now())
        self.roster = Roster()
        self.drains = Drains(desk)
        self.quarantined: dict[str, str] = {}
        self.loaded = False
        self._changed = asyncio.Event()
        self._moved: dict[str, None] = {}
        self._buried = 0

    async def _load(self) -> None:
        await self.desk.read_time()
        await self.desk.count_term()
        await self.drains.load()
        jobs = await self.desk.read_range("job/")
        pipelines = await self.desk.read_range("pipeline/")
        async for item in unhurried(jobs):
            job = self._decoded(JobRecord, item)
            if job:
                self._keep_job(job, item.revision, item.created)
        async for item in unhurried(pipelines):
            pipeline = self._decoded(PipelineRecord, item)
            if pipeline:
                self.desk.time.at_least(newest(pipeline))
                self._keep_pipeline(pipeline, item.revision)
        for item in await self.desk.read_range(GRAVE):
            grave = self._decoded(JobRecord, item)
            if grave:
                self._bury(grave, item.revision)
        await self.vault.load()
        self._set_aside_parts()
        await load_trails(self.desk, self.jobs.values())

    def _decoded(self, kind: type[R], item: Item) -> R | None:
        """Read a record.  A damaged one keeps its job aside; the others must not wait for it.

        A version we do not know is another matter: a master that meets one must not lead at all.
        """
        try:
            return decode(kind, item.value)
        except RecordUnreadable as error:
            if error.code == "record.version":
                raise
            self.quarantined.setdefault(item.key.split("/")[1], str(error))
            return None

    def _set_aside_parts(self) -> None:
        """Never run a job of which a record is missing: what is not there would count as done."""
        for job in list(self.jobs.values()):
            wanted, there = job.state.pipelines, len(job.pipelines)
            if wanted != there:
                reason = f"Of its {wanted} pipeline records {there} can be read."
                self.quarantined.setdefault(job.state.id, reason)
            if job.state.id in self.quarantined:
                del self.jobs[job.state.id]
                for part in job.pipelines.values():
                    self.roster.forget(part)

    def _check_whole(self, job: str) -> None:
        if job in self.quarantined:
            raise UserError(
                f"Job {job} is unreadable: {self.quarantined[job]} Repair or remove its records.",
                code="job.damaged",
            )

    def _keep_job(self, job: JobRecord, revision: int, order: int) -> None:
        key, moved = job_key(job.id), partial(self._move, job.id)
        self.jobs[job.id] = JobKeeper(
            self.desk, key, job, revision, order, moved, self.crew.holds, self.vault
        )

    def _keep_pipeline(self, pipeline: PipelineRecord, revision: int) -> None:
        job = self.jobs.get(pipeline.job)
        if job is None or job.state.incarnation != pipeline.incarnation:
            reason = f"Pipeline {pipeline.number} has no job record of its incarnation."
            self.quarantined.setdefault(pipeline.job, reason)
            return
        key = pipeline_key(pipeline.job, pipeline.number)
        keeper = job.pipelines[pipeline.number] = PipelineKeeper(
            self.desk, key, pipeline, revision, lambda: job.state,
            lambda: self._moved_part(keeper), self.crew.stood_since,
        )  # fmt: skip
        self.roster.note(keeper)

    def _bury(self, job: JobRecord, revision: int) -> None:
        """Keep an ended incarnation whose id is in use again, until it is cleaned up."""
        life = (job.id, job.incarnation)

        def gone() -> None:
            if grave.gone:
                del self.graves[life]
                self._buried += 1

        grave = self.graves[life] = JobKeeper(
            self.desk, grave_key(*life), job, revision, revision, gone, self.crew.holds, self.vault
        )
        if self.loaded:
            grave.resume()

    def _lives(self, job: str) -> set[str]:
        """Return the incarnations of a job that have records."""
        lives = {inc for one, inc in self.graves if one == job}
        return lives | ({self.jobs[job].state.incarnation} if job in self.jobs else set())

    def _finishes(self, saved: Saved) -> bool:
        """Say whether a running incarnation has yet to finish what a state has left."""
        life = (saved.job, saved.incarnation)
        formers = (f for k in self._keepers() if k.state.owes_former for f in k.state.formers)
        return any((f.job, f.incarnation) == life for f in formers if not f.settled)

    def _keepers(self) -> Iterator[PipelineKeeper]:
        for job in self.jobs.values():
            if not job.terminal:
                yield from job.pipelines.values()

    def find(self, key: TaskKey) -> PipelineKeeper | None:
        """Return the keeper a message is for, unless its job is over or another incarnation."""
        job = self.jobs.get(key.job)
        if job is None or job.terminal or job.state.incarnation != key.incarnation:
            return None
        return job.pipelines.get(key.pipeline)

    def _moved_part(self, keeper: PipelineKeeper) -> None:
        """Note that a pipeline has changed, or that its tasks may be placed now."""
        self.roster.note(keeper)
        self._move(keeper.state.job)

    def _move(self, job: str) -> None:
        """Have the loop look at a job."""
        self._moved[job] = None
        self._changed.set()
