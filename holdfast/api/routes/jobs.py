"""Our own paths about jobs and their saved states: /api/jobs and below, /api/savepoints."""

import asyncio
import secrets
from dataclasses import replace
from itertools import pairwise

import msgspec

from holdfast.api.audit import Audit
from holdfast.api.job_graph import JobGraph
from holdfast.api.requests import JobsAsked, RestartAsked, RetryAsked, Submit, SubmitText
from holdfast.api.route import ApiRequest, Permission, Route
from holdfast.api.service import Api
from holdfast.api.status_board import JobStatusView
from holdfast.api.timeline import CheckpointLog
from holdfast.api.views import (
    Accepted,
    CheckpointsView,
    CheckpointView,
    ConfigView,
    Done,
    FailureDetail,
    Failures,
    Gap,
    Graph,
    InProgress,
    JobDetail,
    JobList,
    LogLines,
    PartCheckpoints,
    PartGraph,
    SavedView,
    TableCount,
    Timeline,
    TimelineEvent,
)
from holdfast.core.job import TERMINAL, JobRecord
from holdfast.core.saved_state import Saved
from holdfast.errors import HoldfastError, UserError
from holdfast.master import checkpoint_content
from holdfast.master.accept import told
from holdfast.master.event_log import TRAIL, EventHistory, decode_past, past_key
from holdfast.master.explain import Explanation
from holdfast.master.health import Health, judged
from holdfast.master.pipeline_keeper import PipelineKeeper
from holdfast.master.saved_states import Vault
from holdfast.master.unfinished import Unfinished, blobs_of, unfinished, ways
from holdfast.plan.masking import masked_text
from holdfast.wire.messages import TaskKey

READ_S = 2.0
"""So long an answer waits for a checkpoint.  What is staged is then left out."""

READ, OPERATE = Permission.READ, Permission.OPERATE


class CancelAsked(msgspec.Struct):
    """`force`: at once, without waiting for commits that are not finished."""

    force: bool = False


class SavedAsked(msgspec.Struct):
    """Of which job; of all if none is given."""

    job: str = ""


class JobPaths:
    """The handlers."""

    def __init__(self, api: Api, audit: Audit) -> None:
        self.api = api
        self.audit = audit

    def routes(self) -> list[Route]:
        """Return the paths."""
        one = "/api/jobs/{jobId}"
        return [
            Route("GET", "/api/jobs", READ, self.jobs, JobList,
                  "All jobs, the newest first.", JobsAsked, narrow=True),
            Route("POST", "/api/jobs", OPERATE, self.submit, Accepted,
                  "Submit a job that a client has parsed.", body=Submit, order=True),
            Route("POST", "/api/submit", OPERATE, self.submit_text, Accepted,
                  "Submit a job as its text.", body=SubmitText, order=True, narrow=True),
            Route("GET", one, READ, lambda ask: self.api.job(ask.job), JobDetail,
                  "All about one job."),
            Route("GET", one + "/explain", READ, self.explain, Explanation,
                  "What a job waits for, from whom, since when, what happens next."),
            Route("GET", one + "/graph", READ, self.graph, Graph,
                  "Its stages, pipelines and tasks with their rates."),
            Route("GET", one + "/checkpoints", READ, self.checkpoints, CheckpointsView,
                  "Its checkpoints: durations, sizes, failures and gaps."),
            Route("GET", one + "/timeline", READ, self.timeline, Timeline,
                  "What happened to it, across leaders and attempts."),
            Route("GET", one + "/failures", READ, self.failures, Failures,
                  "Why attempts of it ended."),
            Route("GET", one + "/config", READ, self.config, ConfigView,
                  "What its file says, without secrets."),
            Route("GET", one + "/logs", READ, lambda ask: self.api.logs(ask.job), LogLines,
                  "What this master has logged about it.", leads=False),
            Route("POST", one + "/cancel", OPERATE, self.cancel, Accepted,
                  "Cancel it; `force` does not wait for commits.", CancelAsked, order=True),
            Route("POST", one + "/savepoint", OPERATE,
                  lambda ask: self.api.savepoint(ask.job), Accepted,
                  "Stop it with a savepoint.", order=True),
            Route("GET", "/api/savepoints", READ, self.saved, list[SavedView],
                  "The saved states of jobs, the newest first.", SavedAsked, narrow=True),
            Route("DELETE", one + "/savepoints/{saved}", OPERATE, self.remove_saved, Done,
                  "Remove a saved state, with what was staged for it.", order=True),
            Route("POST", one + "/restart", OPERATE, self.restart, Accepted,
                  "Continue from a saved state of the job.", body=RestartAsked, order=True),
            Route("POST", one + "/retry", OPERATE, self.retry, Accepted,
                  "Run it again with the same file, from its savepoint if asked.", body=RetryAsked,
                  order=True),
        ]  # fmt: skip

    async def jobs(self, ask: ApiRequest) -> JobList:
        return await self.api.jobs(ask.query, ask.who.jobs)

    async def submit(self, ask: ApiRequest) -> Accepted:
        self._write_again(ask)
        return await self.api.submit(ask.body)

    def _write_again(self, ask: ApiRequest) -> None:
        """Write to the audit log that rows are to be written again."""
        asked: Submit | SubmitText = ask.body
        if asked.write_again:
            source = asked.source or asked.job_id
            self.audit.writes_again(ask.who, asked.job_id, source, asked.number)

    async def submit_text(self, ask: ApiRequest) -> Accepted:
        if not (ask.who.sees(ask.body.job_id) and ask.who.sees(ask.body.source or ask.body.job_id)):
            raise UserError(
                f"This token is for jobs whose ids begin with {ask.who.jobs}: give such a job_id.",
                code="token.role",
            )
        self._write_again(ask)
        return await self.api.submit_text(ask.body)

    async def explain(self, ask: ApiRequest) -> Explanation:
        said = await self.api.explain(ask.job)
        left, finish = await _unfinished_of(self.api, ask.job)
        return replace(
            said,
            summary=masked_text(said.summary),
            waits=tuple(replace(w, what=masked_text(w.what)) for w in said.waits),
            failures=tuple(replace(f, reason=masked_text(f.reason)) for f in said.failures),
            unfinished=left,
            finish=finish,
        )

    async def cancel(self, ask: ApiRequest) -> Accepted:
        if ask.query.force:
            self.audit.forces(ask.who, ask.job)
        return await self.api.cancel(ask.job, force=ask.query.force)

    async def retry(self, ask: ApiRequest) -> Accepted:
        asked: RetryAsked = ask.body
        token = asked.token or secrets.token_hex(16)
        return await self.api.again(ask.job, token, restore=asked.restore)

    async def saved(self, ask: ApiRequest) -> list[SavedView]:
        vault = (await self.api.leader()).vault
        return [_saved_view(vault, s) for s in vault.of(ask.query.job) if ask.who.sees(s.job)]

    async def remove_saved(self, ask: ApiRequest) -> Done:
        leader = await self.api.leader()
        number = int(ask.path["saved"])
        found = [k.saved for k in leader.vault.states.values() if k.saved.job == ask.job]
        saved = next((s for s in found if s.life == number), None)
        if saved is None:
            raise UserError(f"Job {ask.job} has no saved state {number}.", code="saved.unknown")
        await self.api.fenced(leader, leader.remove_saved(saved))
        return Done()

    async def restart(self, ask: ApiRequest) -> Accepted:
        asked: RestartAsked = ask.body
        token = asked.token or secrets.token_hex(16)
        if asked.write_again:
            self.audit.writes_again(ask.who, ask.job, ask.job, asked.number)
        return await self.api.submit(
            Submit(
                asked.spec, token, ask.job, restore=True, maps=asked.maps,
                allow_dropped=asked.allow_dropped, number=asked.number,
                write_again=asked.write_again,
            )
        )  # fmt: skip

    async def graph(self, ask: ApiRequest) -> Graph:
        found, sketch, sight = await self._seen(ask.job)
        stages_of = {p.pipeline: p.tasks for p in sketch.parts}
        parts = [
            PartGraph(p.pipeline, p.status, p.health, p.tasks, stages_of.get(p.pipeline, {}))
            for p in found.pipelines
        ]
        written = [w for c in (sight.checks.values() if sight else ()) for w in c.written]
        sums: dict[tuple[str, str], TableCount] = {}
        for one in written:
            where = sketch.place_of(one.sink, one.table)
            fresh = TableCount(one.sink, one.table, 0, 0, where)
            count = sums.setdefault((one.sink, one.table), fresh)
            count.rows += one.rows
            count.bytes += one.bytes
        return Graph(
            ask.job, found.live, sketch.problem, list(sketch.stages), parts, list(sums.values())
        )

    async def checkpoints(self, ask: ApiRequest) -> CheckpointsView:
        found, _, sight = await self._seen(ask.job)
        parts = []
        for part in found.pipelines:
            checks = sight.checks.get(part.pipeline) if sight else None
            record = self.api.pipeline(ask.job, part.pipeline)
            if checks and record:
                parts.append(_checkpoints(checks, record, self.api.default_interval_s))
        if sight and not parts:
            parts = [_over(n, c) for n, c in sorted(sight.checks.items())]
        since_s = sight.events[0].at_s if sight and sight.events else 0.0
        return CheckpointsView(ask.job, found.live, since_s, parts)

    async def timeline(self, ask: ApiRequest) -> Timeline:
        found, _, sight = await self._seen(ask.job)
        if sight:
            events = list(sight.events)
        else:
            events = [TimelineEvent(found.since_s, "job", "SUBMITTED")]
            at_s = found.ended_s or found.since_s
            events.append(TimelineEvent(at_s, "job", found.status, reason=found.reason))
        for one in events:
            one.reason = masked_text(one.reason)
        return Timeline(ask.job, found.live, sorted(events, key=lambda e: e.at_s))

    async def failures(self, ask: ApiRequest) -> Failures:
        found, _, sight = await self._seen(ask.job)
        seen = {
            (e.pipeline, e.task, e.attempt): e
            for e in (sight.events if sight else ())
            if e.what == "task" and e.status == "FAILED"
        }
        failures = []
        for part in found.pipelines:
            for one in part.failures:
                event = seen.get((part.pipeline, one.task, one.attempt))
                at_s, worker = (event.at_s, event.worker) if event else (0.0, "")
                key = TaskKey(ask.job, found.incarnation, part.pipeline, one.task)
                stack = masked_text(self.api.board.stack(key, one.attempt))
                detail = FailureDetail(
                    part.pipeline, one.task, one.attempt, at_s, worker, one.reason, stack
                )
                failures.append(detail)
        return Failures(ask.job, found.restarts, failures[::-1])

    async def config(self, ask: ApiRequest) -> ConfigView:
        job = await self.api.record(ask.job)
        sketch = await self.api.sketches.of(job)
        shown: dict[str, object] = {**(sketch.config or {})}
        return ConfigView(ask.job, sketch.file, sketch.mode, shown, masked_text(sketch.problem))

    async def _seen(self, job_id: str) -> tuple[JobDetail, JobGraph, JobStatusView | None]:
        found = await self.api.job(job_id)
        record = await self.api.record(job_id)
        sight = self.api.sight(job_id) or self.api.board.remembered(record)
        sight = sight or await self._told(record)
        return found, await self.api.sketches.of(record), sight

    async def _told(self, job: JobRecord) -> JobStatusView | None:
        """Return what leaders have left in the store about a job that this master does not keep."""
        store = self.api.master.store
        items, _ = await store.range(f"{TRAIL}{job.id}/")
        key = past_key(job.id, job.incarnation)
        past = await store.get(key) if job.status in TERMINAL else None
        if past:
            trails = decode_past(past.value, key)
        else:
            read = {
                int(i.key.rpartition("/")[2]): EventHistory.decoded(i.value, i.key) for i in items
            }
            trails = {number: trail for number, trail in read.items() if trail}
        checks = {number: CheckpointLog(trail) for number, trail in trails.items() if number}
        return JobStatusView(job, checks, trails) if trails else None


def _over(number: int, checks: CheckpointLog) -> PartCheckpoints:
    """Return the checkpoints of a pipeline whose record is gone."""
    history = checks.done[::-1]
    done = sum(c.outcome == "COMPLETED" for c in history)
    return PartCheckpoints(
        number, None, history[0].number + 1 if history else 1, len(history), done,
        len(history) - done, checks.restored, 0, "", None, history, [],
    )  # fmt: skip


def _checkpoints(
    checks: CheckpointLog, record: PipelineKeeper, interval_s: float
) -> PartCheckpoints:
    from_record = record.state
    policy, done = from_record.policy, from_record.checkpoints
    every_s = (policy.interval_s or interval_s) if policy.periodic else None
    under, progress = checks.under, None
    if under:
        gathering = record.gathering
        missing = list(gathering.waiting) if gathering else []
        total = len(from_record.tasks)
        progress = InProgress(
            under.pending.number, under.pending.kind.value, under.at_s, total - len(missing), total,
            missing,
        )  # fmt: skip
    history = checks.done[::-1]
    return PartCheckpoints(
        from_record.number, every_s, done.next, checks.triggered, checks.completed, checks.failed,
        checks.restored, done.failed_in_a_row, masked_text(done.last_failure), progress, history,
        _gaps(history, every_s) if every_s else [],
    )  # fmt: skip


def _gaps(history: list[CheckpointView], every_s: float) -> list[Gap]:
    dates = [c.ended_s for c in history if c.outcome == "COMPLETED" and c.ended_s][::-1]
    return [Gap(a, b) for a, b in pairwise(dates) if judged(b - a, every_s) is not Health.OK]


def _saved_view(vault: Vault, saved: Saved) -> SavedView:
    """Return a saved state as it is shown."""
    left_s = saved.made_s + saved.retained_s - vault.led_s() if saved.retained_s else None
    return SavedView(
        saved.job, saved.life, saved.kind.value, saved.name, saved.ended_s, saved.totals.written,
        {p.pipeline: p.number for p in saved.parts}, sum(len(p.waiting) for p in saved.parts),
        saved.retained_s, None if left_s is None else max(0.0, left_s),
        [told(heir) for heir in vault.past(saved)],
    )  # fmt: skip


async def _unfinished_of(api: Api, job_id: str) -> tuple[tuple[Unfinished, ...], tuple[str, ...]]:
    """Return it, commit by commit, and how to finish or remove it."""
    job = await api.record(job_id)
    if not job.abandoned:
        return (), ()
    vault = (await api.leader()).vault
    lives = [(job.id, job.incarnation)]
    lives += [(a.life.partition("/")[0], a.life.partition("/")[2]) for a in job.abandoned if a.life]
    saved = next((s for s in (vault.keeps(*life) for life in lives) if s), None)
    contents = {}
    for name in blobs_of(job) if saved else ():
        try:
            async with asyncio.timeout(READ_S):
                contents[name] = checkpoint_content.read(await api.blobs.get(name))
        except (HoldfastError, TimeoutError):
            continue
    past = vault.past(saved) if saved else []
    found = ways(job, saved, masked_text(told(past[0])) if past else "")
    left = tuple(
        replace(one, staged=tuple(masked_text(name) for name in one.staged))
        for one in unfinished(job, contents)
    )
    return left, found
