"""What a master answers to clients, as JSON under /api.

Only the leader takes orders, and it answers only once what was asked is durable.  A standby
names the leader (421); lists and states it reads from the store, which is as true.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.api.job_graph import JobGraph, JobGraphs
from holdfast.api.job_list import EndedJobs, Listing
from holdfast.api.job_snapshot import held_of, scene_of, waits_of
from holdfast.api.lineage import Lineage
from holdfast.api.live_views import cluster_view, detail
from holdfast.api.logs import log_lines
from holdfast.api.problems import NotLeader
from holdfast.api.requests import JobsAsked, Submit, SubmitText
from holdfast.api.restoring import (
    FirstLook,
    RestoreChoices,
    RestorePlan,
    chosen,
    go_on,
    incarnation_of,
    undone,
)
from holdfast.api.route import job_id_of
from holdfast.api.sealing import OPTION, SPEC, opened_options, sealed_options
from holdfast.api.status_board import JobStatusView, StatusBoard
from holdfast.api.submission import Reader, read_spec
from holdfast.api.views import Accepted, ClusterView, JobDetail, JobList, LogLines
from holdfast.connect.checks import CheckReport
from holdfast.connect.registry import Registry
from holdfast.core.job import JobRecord
from holdfast.core.pipeline import PipelineRecord
from holdfast.core.saved_state import Saved
from holdfast.errors import Fenced, Unavailable, UserError
from holdfast.master.admission import new_records, too_large
from holdfast.master.explain import Explanation, explain
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.leader import Leader
from holdfast.master.leader_store import LEADER
from holdfast.master.looks import LookRequests
from holdfast.master.master import Mark, Master, read_mark
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.records import RecordUnreadable, decode, job_key
from holdfast.model.job import JobPlan
from holdfast.model.secret import Secret
from holdfast.plan.record import JobSource, encode_spec
from holdfast.security.path_policy import PathPolicy
from holdfast.security.seal import Seal

SETTLED_S = 3.0
"""How long after its election a leader takes to have had a heartbeat of every worker."""


class Api:
    """The answers of one master."""

    def __init__(
        self,
        master: Master,
        registry: Registry,
        token: Secret,
        *,
        allow_python: bool = False,
        refuse_too_large: bool = False,
        log_file: Path | None = None,
        board: StatusBoard | None = None,
        environment: Sequence[str] = (),
        seal: Seal | None = None,
        confined: PathPolicy | None = None,
        masters: Sequence[str] = (),
    ) -> None:
        self.master = master
        self.masters = masters
        self.registry = registry
        self.token = token
        self.allow_python = allow_python
        self.refuse_too_large = refuse_too_large
        self.log_file = log_file
        self.board = board or StatusBoard(master.ports.clock)
        self.catalog = EndedJobs(master.store)
        self.seal = seal
        self.served = 0
        self.blobs = master.ports.blobs
        self.sketches = JobGraphs(registry, self.opened)
        self.lineage: Lineage | None = None
        self.listing = Listing(master, self.board, self.catalog, self.sketches)
        self.looks: LookRequests | None = None
        """Has workers open what jobs name; none where no worker can be linked."""
        self.reader = Reader(registry, allow_python=allow_python, environment=environment)
        self.confined = confined or PathPolicy()
        self.default_interval_s = master.ports.settings.interval_s
        self._submitting = asyncio.Lock()

    async def submit(self, asked: Submit) -> Accepted:
        """Check a job, every mistake at once, and accept it once it is durable."""
        await self.leader()
        if not asked.token:
            raise UserError("A submit needs a token of its own.", code="request")
        job_id = job_id_of(asked.job_id, asked.token)
        while (accepted := await self._accepted(asked, job_id)) is None:
            continue  # another incarnation has ended since: continue from that one
        return accepted

    async def _accepted(self, asked: Submit, job_id: str) -> Accepted | None:
        """Accept a job; None if it was to continue from a saved state that is not the latest."""
        leader = await self.leader()
        saved = await self._chosen(leader, asked, job_id)
        spec = self.spec_of(asked.spec or self.opened(saved.spec if saved else ""))
        text, report = encode_spec(spec), CheckReport(lenient=spec.lenient)
        planned = await asyncio.to_thread(spec.job, self.registry, report)
        self.confined.check(planned)
        accepted = Accepted(job_id, planned.name, [str(w) for w in report.warnings])
        if saved:
            accepted.warnings += await self._looked(leader, asked, job_id, saved, spec, planned)
        # One at a time: the same submit may come again while it is being written.
        async with self._submitting:
            leader = await self.leader()
            lives = await self.lives(leader, job_id)
            # A repeated submit may come when the job has already ended, gone or given its id away.
            if job_id not in leader.jobs and any(job.token == asked.token for job in lives):
                return accepted
            incarnation = f"{time.time_ns():x}-{secrets.token_hex(2)}"
            if saved:
                incarnation = incarnation_of(asked.token)
            kept = self.seal.close(text, SPEC) if self.seal else text
            number = 1 + max([leader.vault.last_life(job_id), *(job.life for job in lives)])
            made = new_records(job_id, incarnation, asked.token, kept, planned, number)
            if self.refuse_too_large:
                self._check_size(leader, *made)
            start, known = None, leader.has(job_id, asked.token)
            if not saved and not known:
                accepted.warnings += undone(leader, job_id)
            elif saved and not known:
                latest = await self._chosen(leader, asked, job_id)
                if latest and latest.id != saved.id:
                    return None
                begun = RestoreChoices(asked.maps, asked.allow_dropped, asked.write_again)
                going = RestorePlan(leader, self.registry, saved, self.opened(saved.spec), planned)
                made, start, accepted.restored = await going.begin(begun, *made)
            await self.fenced(leader, leader.submit(*made, start))
            if not known:  # REST v2's answer has no place for warnings
                keeper = leader.jobs[job_id]
                await keeper.tell(RESTORED=accepted.restored, WARNED=accepted.warnings)
        return accepted

    async def _looked(
        self,
        leader: Leader,
        asked: Submit,
        job_id: str,
        saved: Saved,
        spec: JobSource,
        planned: JobPlan,
    ) -> list[str]:
        """Have a worker open what a restored job names, unless it was accepted before."""
        kept, lives = leader.jobs.get(job_id), await self.lives(leader, job_id)
        taken = (kept and not kept.terminal) or any(job.token == asked.token for job in lives)
        if taken or not self.looks:
            return []
        given = RestoreChoices(asked.maps, asked.allow_dropped, asked.write_again)
        before, about = self.opened(saved.spec), f"job {saved.job}"
        going = await asyncio.to_thread(go_on, before, planned, self.registry, given, about)
        moved = going.matching.moved
        return await FirstLook(leader, self.looks, job_id, spec, planned, moved).warnings(
            asked.token
        )

    async def _chosen(self, leader: Leader, asked: Submit, job_id: str) -> Saved | None:
        """Return the saved state that a job is to continue from, if any."""
        if not asked.restore:
            return None
        source = asked.source or job_id
        return chosen(leader, source, asked.number, await self.lives(leader, source))

    def opened(self, spec: str) -> str:
        """Return what a record keeps of a job file, unsealed."""
        return self.seal.open(spec, SPEC) if self.seal else spec

    def seal_options(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return a job's JSON with its secrets sealed; a submit opens them again."""
        if self.seal is None:
            raise UserError("This master has no key to seal with.", code="seal.none")
        seal = self.seal
        return sealed_options(config, self.registry, lambda text: seal.close(text, OPTION))

    async def submit_text(self, asked: SubmitText) -> Accepted:
        """Read a job's text here, where nothing of this machine gets into it, and submit it."""
        report = CheckReport(lenient=asked.lenient, allow_unset=asked.allow_unset)
        spec = await asyncio.to_thread(self.reader.spec, asked, report)
        token = asked.token or secrets.token_hex(16)
        return await self.submit(
            Submit(
                encode_spec(spec), token, asked.job_id, asked.restore, asked.maps,
                asked.allow_dropped, asked.source, asked.number, asked.write_again,
            )
        )  # fmt: skip

    async def again(self, job_id: str, token: str, *, restore: bool) -> Accepted:
        """Run a job that is over once more, as its file was when it was submitted."""
        leader = await self.leader()
        kept = leader.jobs.get(job_id)
        if kept and not kept.terminal:
            raise UserError(
                f"Job {job_id} is {kept.state.status}; only one that is over is run again.",
                code="job.exists",
            )
        if restore:
            return await self.submit(Submit("", token, job_id, restore=True))
        if kept:
            raise UserError(kept.in_use(), code="job.exists")
        job = await self.record(job_id)
        return await self.submit(Submit(self.opened(job.spec), token, job_id))

    async def jobs(self, asked: JobsAsked | None = None, begin: str = "") -> JobList:
        """Return jobs, the newest first; `begin`: only those whose ids begin so."""
        return await self.listing.jobs(self.leading(), asked or JobsAsked(), begin)

    async def job(self, job_id: str) -> JobDetail:
        """Return all about one job."""
        leader = self.leading()
        keeper = leader.jobs.get(job_id) if leader else None
        if leader and keeper:
            return self._live(leader, keeper, await self.sketches.of(keeper.state))
        mark = await self.mark()
        job, pipelines, revision = await self.stored(job_id)
        seen = self.board.remembered(job)
        return detail(
            job, pipelines or (seen.pipelines.values() if seen else ()), revision=revision,
            leader=mark.url if mark else "", sketch=await self.sketches.of(job), sight=seen,
        )  # fmt: skip

    async def record(self, job_id: str) -> JobRecord:
        """Return a job's record, or what the history keeps of it."""
        leader = self.leading()
        keeper = leader.jobs.get(job_id) if leader else None
        return keeper.state if keeper else (await self.stored(job_id))[0]

    def sight(self, job_id: str) -> JobStatusView | None:
        """Return what this leader has seen of a job."""
        return self.board.lives.get(job_id)

    def pipeline(self, job_id: str, number: int) -> PipelineKeeper | None:
        """Return the keeper of a pipeline, if this master leads."""
        leader = self.leading()
        keeper = leader.jobs.get(job_id) if leader else None
        return keeper.pipelines.get(number) if keeper else None

    async def mark(self) -> Mark | None:
        """Return who leads, as the store says."""
        item = await self.master.store.get(LEADER)
        return read_mark(item.value) if item else None

    async def elsewhere(self) -> str:
        """Return where the leader is reached; "" if it is this master, or there is none."""
        if self.leading():
            return ""
        mark = await self.mark()
        return mark.url if mark and mark.incarnation != self.master.incarnation else ""

    async def explain(self, job_id: str) -> Explanation:
        """Say what a job waits for."""
        leader = await self.leader()
        keeper = leader.jobs.get(job_id)
        if keeper is None:
            job, _, _ = await self.stored(job_id)
            return explain(scene_of(leader, self.master.ports, self.board.journal, job, ()))
        pipelines = tuple(k.state for _, k in sorted(keeper.pipelines.items()))
        return explain(
            scene_of(leader, self.master.ports, self.board.journal, keeper.state, pipelines)
        )

    async def cancel(self, job_id: str, *, force: bool = False) -> Accepted:
        """Have a job stop.  Yes for one that is over already."""
        leader = await self.leader()
        if job_id not in leader.jobs and await self.history(job_id):
            return Accepted(job_id)
        await self.fenced(leader, leader.cancel(job_id, force=force))
        return Accepted(job_id)

    async def savepoint(self, job_id: str) -> Accepted:
        """Have a job stop with a savepoint."""
        leader = await self.leader()
        if job_id not in leader.jobs and await self.history(job_id):
            raise UserError(f"Job {job_id} is over; it cannot be saved.", code="job.not_running")
        await self.fenced(leader, leader.savepoint(job_id, secrets.token_hex(8)))
        return Accepted(job_id)

    async def cluster(self) -> ClusterView:
        """Return who leads and who works."""
        return cluster_view(await self.leader(), self.master, self.board)

    async def logs(self, job_id: str) -> LogLines:
        """Return what this master has logged about a job; other masters may know more."""
        found = await asyncio.to_thread(log_lines, self.log_file, job_id)
        return LogLines(self.master.name, found)

    def leading(self) -> Leader | None:
        """Return the leader, if it is this master and all records are loaded."""
        leader, now_s = self.master.leader, self.master.ports.clock.now()
        if leader and leader.loaded and self.master.election.may_act(now_s):
            return leader
        return None

    async def leader(self) -> Leader:
        leader = self.leading()
        if leader:
            return leader
        known = await self.mark()
        if known is None or known.incarnation == self.master.incarnation:
            raise Unavailable(
                "No master leads at this moment. Ask again in a moment.", code="master.no_leader"
            )
        raise NotLeader(
            f"This master stands by; {known.name} leads at {known.url}.",
            code="master.standby",
            leader=known.url,
        )

    async def fenced(self, leader: Leader, order: Awaitable[None]) -> None:
        """Carry out an order; being fenced ends the term, and the client asks the next leader."""
        try:
            await order
        except Fenced as error:
            leader.desk.abandon()
            raise Unavailable(
                "This master no longer leads; it is not known here whether the order was taken."
                " Ask again.",
                code="master.fenced",
            ) from error

    def _check_size(
        self, leader: Leader, job: JobRecord, pipelines: tuple[PipelineRecord, ...]
    ) -> None:
        """Refuse a job that the workers could never carry; a new leader must know them first."""
        clock = self.master.ports.clock
        if clock.now() < leader.crew.since_s + SETTLED_S:
            raise Unavailable("This master has just begun to lead. Ask again in a moment.")
        why = too_large(job, pipelines, leader.crew)
        if why and job.id not in leader.jobs:
            raise UserError(
                f"Job {job.name} fits on no worker that is connected, even an empty one: {why}."
                " Start more workers or give them more slots or tags, lower the job's parallelism,"
                " or set too_large: wait on the masters.",
                code="job.too_large",
            )

    def spec_of(self, text: str) -> JobSource:
        """Read what a client has parsed, with its sealed options opened."""
        spec = read_spec(text)
        if spec.allow_python and not self.allow_python:
            raise UserError(
                "This cluster runs no Python functions of job files. Set allow_python on its"
                " masters, or submit without --allow-python.",
                code="job.python",
            )
        if self.seal is None:
            return spec
        seal = self.seal
        return replace(spec, tree=opened_options(spec.tree, lambda text: seal.open(text, OPTION)))

    async def lives(self, leader: Leader, job_id: str) -> list[JobRecord]:
        """Return all known incarnations of a job id."""
        buried = [k.state for (job, _), k in leader.graves.items() if job == job_id]
        now = [leader.jobs[job_id].state] if job_id in leader.jobs else []
        return [*now, *buried, *await self.history(job_id)]

    async def history(self, job_id: str) -> list[JobRecord]:
        """Return the former jobs of an id that the history keeps, the newest first."""
        entries, _ = await self.master.store.range(f"history/{job_id}/")
        found = sorted(entries, key=lambda i: i.created, reverse=True)
        return [decode(JobRecord, item.value) for item in found]

    async def stored(self, job_id: str) -> tuple[JobRecord, tuple[PipelineRecord, ...], int]:
        """Read a job from the store: its records, or what the history keeps of it."""
        store = self.master.store
        try:
            item = await store.get(job_key(job_id))
            if item:
                parts, revision = await store.range(f"pipeline/{job_id}/")
                pipelines = tuple(decode(PipelineRecord, p.value) for p in parts)
                return decode(JobRecord, item.value), pipelines, revision
            former, revision = await self.history(job_id), (await store.range("leader"))[1]
        except RecordUnreadable as error:
            raise UserError(f"Job {job_id} is damaged: {error}", code="job.damaged") from error
        if not former:
            raise UserError(f"There is no job {job_id}.", code="job.unknown")
        return former[0], (), revision

    async def stored_jobs(self) -> list[JobRecord]:
        """Return the jobs whose records can be read, the newest first."""
        items, _ = await self.master.store.range("job/")
        found = []
        for item in sorted(items, key=lambda i: i.created, reverse=True):
            with contextlib.suppress(RecordUnreadable):  # a list shows it as damaged
                found.append(decode(JobRecord, item.value))
        return found

    def _live(self, leader: Leader, keeper: JobKeeper, sketch: JobGraph) -> JobDetail:
        job = keeper.state
        return detail(
            job,
            [k.state for _, k in sorted(keeper.pipelines.items())],
            revision=keeper.revision,
            leader=self.master.url,
            reports={r.pipeline: r for r in leader.health(job.id)},
            held=held_of(leader, job),
            waits=waits_of(leader, job),
            live=True,
            sight=self.sight(job.id),
            sketch=sketch,
        )
