"""Run a job in this process: a master and a worker, joined by direct calls, on a SQLite file.

It is the cluster's own code with one member of each kind.  The event loop has a thread of its own;
the caller submits a job, waits, and may cancel it.  The store is in a scratch folder and is
gone with the job: one that is killed is not taken up again, but what it owed is done by the next
run (`abandoned_runs.py`).
"""

import asyncio
import logging
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from typing import Any

from holdfast.core.job import TERMINAL, JobStatus
from holdfast.core.pipeline import ACTIVE, FAILED, FAILING, PipelineRecord
from holdfast.errors import Fenced, HoldfastError, Unavailable, UserError
from holdfast.master.admission import new_records
from holdfast.master.job_keeper import JobKeeper
from holdfast.master.master import Master
from holdfast.master.ports import MasterSettings, Ports
from holdfast.model import job as model
from holdfast.plan.record import JobSource, encode_spec
from holdfast.process.abandoned_runs import (
    BLOBS,
    STORE,
    claim_folder,
    let_finish,
    recover_abandoned_runs,
)
from holdfast.process.checkpoint_store import open_blobs
from holdfast.process.clock import SystemClock
from holdfast.process.committers import PatientTables
from holdfast.process.failpoints import points_from_env
from holdfast.process.run_outcome import RunOutcome, RunStatus, RunView
from holdfast.store.open import open_store
from holdfast.wire.messages import TaskKey, ToLeader, ToWorker
from holdfast.worker.agent import Worker, WorkerSettings
from holdfast.worker.attempt import Attempt, WorkerRuntime
from holdfast.worker.failures import GONE
from holdfast.worker.row_counts import Measured

NAME = "local"


SLOTS = 1_000_000
"""Whether there is room was decided before; here a task never waits for a slot."""


LOOK_S = 0.005


LOOK_S_MAX = 0.5


CLEANUP_S_MAX = 15.0


CLOSE_S_MAX = 40.0


SETTINGS = MasterSettings(
    # There is no other candidate, and a process that was suspended just continues.
    lease_s=30.0,
    campaign_s=0.05,
    resend_s=0.1,
    worker_lost_s=3600.0,
    # A person watches; how long a slice may take is theirs to judge.
    progress_s=math.inf,
    timeout_s=3600.0,
    # No other job can use the id.
    tombstone_s=0.0,
    retry_s=0.02,
    # The store goes with the run: nothing could start from what a job leaves.
    saves=False,
)


Notice = Callable[[str], None]


log = logging.getLogger("holdfast")


class LocalCluster:
    """A master and a worker in a background thread, for one job.

    `start`, `submit`, `wait`; `cancel` from any thread; `close` in the end, whatever happened.
    """

    def __init__(
        self, run: WorkerRuntime, say: Notice, tags: Mapping[str, str] | None = None
    ) -> None:
        self._runner = run
        self._tags = tags or {}
        self._incarnation = secrets.token_hex(4)
        self._tables = PatientTables(run.registry, say)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._master: Master | None = None
        self._worker: Worker | None = None
        self._up = threading.Event()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._live, name="control-plane", daemon=True)
        self._job_id = ""
        self._buried = False
        self._story = RunProgress(say, self._tables)

    def start(self) -> None:
        """Begin to elect and to beat."""
        self._thread.start()

    def submit(self, spec: JobSource, job: model.JobPlan, job_id: str) -> None:
        """Make a job's records durable; its tasks then start as soon as Spark is there."""
        self._job_id, self._story.name = job_id, job.name
        self._tables.allow(job.retry_times, job.retry_interval_s)
        self._ask(self._submit(spec, job, job_id)).result()

    def wait(self, timeout_s: float) -> bool:
        """Wait at most so long; say whether the job has ended and is cleaned up."""
        return self._done.wait(timeout_s)

    def cancel(self) -> None:
        """Ask for the job's end, durably.  Safe to repeat, and in a signal handler."""
        self._tables.hurry()
        if not self._done.is_set():
            self._ask(self._cancel())

    def outcome(self) -> RunOutcome:
        """Return how the job ended, once it has."""
        assert self._story.outcome
        return self._story.outcome

    def view(self) -> RunView:
        """Return how far the job has come."""
        running = list(self._worker.attempts.values()) if self._worker else []
        return self._story.view(running)

    def close(self) -> None:
        """Stop everything and remove the store.  Safe to repeat."""
        self._up.wait()
        if self._loop and self._thread.is_alive():
            self._post(self._closing.set)
        self._thread.join(CLOSE_S_MAX)
        if self._thread.is_alive():
            log.warning("The control plane of this run did not end in time.")

    def _live(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001  the caller that waits for the job gets it
            self._break(error)
        finally:
            self._up.set()
            self._done.set()

    def _break(self, error: BaseException) -> None:
        """End with what broke the control plane itself."""
        log.error("the control plane broke", exc_info=error)
        known = error if isinstance(error, HoldfastError) else None
        shown = known or Unavailable(
            f"Holdfast's control plane broke: {type(error).__name__}: {error}. This is a bug.",
            code="node.broken",
        )
        if shown is not error:
            shown.__cause__ = error
        self._story.outcome = self._story.outcome or RunOutcome(RunStatus.FAILED, shown)

    async def _serve(self) -> None:
        """Be a master and a worker until `close`."""
        self._loop = asyncio.get_running_loop()
        self._closing, self._stirred = asyncio.Event(), asyncio.Event()
        async with AsyncExitStack() as cleanup:
            folder = claim_folder(cleanup, lambda: bool(self._job_id) and not self._buried)
            store = await open_store(f"sqlite:{folder / STORE}")
            cleanup.push_async_callback(store.close)
            blobs = open_blobs(str(folder / BLOBS))
            cleanup.callback(blobs.close)
            cleanup.callback(self._tables.close)
            inbox: asyncio.Queue[ToLeader] = asyncio.Queue()
            settings = WorkerSettings(beat_s=0.1, orphan_s=math.inf)
            worker = self._worker = Worker(
                NAME, self._incarnation, SLOTS, self._tags, self._runner, inbox.put_nowait,
                settings, ended=self._story.ended,
            )  # fmt: skip
            points = points_from_env(os.environ, log.info)
            ports = Ports(
                SystemClock(),
                blobs,
                self._tables,
                _Direct(worker),
                points,
                SETTINGS,
                lambda key: self._stirred.set(),
            )
            self._master = Master(NAME, self._incarnation, store, ports)
            cleanup.push_async_callback(self._stop, self._master, worker)
            finishing = asyncio.ensure_future(recover_abandoned_runs(self._runner.registry))
            cleanup.push_async_callback(let_finish, finishing)
            await self._beside(self._master, worker, inbox)

    async def _beside(
        self, master: Master, worker: Worker, inbox: "asyncio.Queue[ToLeader]"
    ) -> None:
        """Run all parts side by side; one that ends by itself has broken."""
        parts = (master.run(), worker.run(), self._pump(master, inbox), self._watch_spark(worker))
        running = [asyncio.ensure_future(p) for p in (*parts, self._closing.wait())]
        self._serving = running[0]
        self._up.set()
        try:
            ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                await task
            if not self._closing.is_set():
                raise Unavailable(master.refusal or "A part of the control plane ended.")
        finally:
            for task in running[1:]:
                task.cancel()

    async def _stop(self, master: Master, worker: Worker) -> None:
        await worker.stop()
        master.stop()
        await asyncio.wait([self._serving], timeout=5)

    async def _pump(self, master: Master, inbox: "asyncio.Queue[ToLeader]") -> None:
        """Hand the worker's messages to the leader, one after the other."""
        while True:
            message = await inbox.get()
            if master.leader:
                await master.leader.hear(self._incarnation, message)

    async def _watch_spark(self, worker: Worker) -> None:
        """A job whose Spark is gone has nothing to be tried again on."""
        await worker.spark_lost.wait()
        loss = self._runner.loss(0)
        if loss and self._job_id and not self._done.is_set():
            self._story.outcome = RunOutcome(RunStatus.FAILED, loss)
            await self._cancel()
        await self._closing.wait()

    async def _submit(self, spec: JobSource, job: model.JobPlan, job_id: str) -> None:
        token = secrets.token_hex(8)
        records = new_records(job_id, self._incarnation, token, encode_spec(spec), job)
        await self._led(lambda: self._leader().submit(*records))
        self._following = asyncio.ensure_future(self._follow())
        self._following.add_done_callback(self._followed)

    async def _cancel(self) -> None:
        try:
            await self._led(lambda: self._leader().cancel(self._job_id))
        except UserError as error:
            log.info("nothing to cancel: %s", error)  # the job is over, and cleaned up

    async def _led(self, call: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Ask the leader, again as long as there is none."""
        while True:
            try:
                return await call()
            except (Unavailable, Fenced):
                await asyncio.sleep(LOOK_S)

    def _leader(self) -> Any:
        leader = self._master.leader if self._master else None
        if leader is None:
            raise Unavailable("This process is not elected yet.")
        return leader

    async def _follow(self) -> None:
        """Look at the job's records after each durable step until it is over and cleaned up."""
        over_s, keeper = 0.0, None
        while True:
            leader = self._master.leader if self._master else None
            known = leader.jobs.get(self._job_id) if leader and leader.loaded else None
            keeper = known or keeper  # it may be gone before we come to look
            if keeper:
                self._story.see(keeper)
                if keeper.terminal and not over_s:
                    over_s = time.monotonic()
                    if self._worker:  # the answer says at once which attempts to stop
                        self._worker.beat()
            if over_s and leader and leader.loaded and (known is None or known.gone):
                self._buried = True
                return
            if over_s and time.monotonic() - over_s > CLEANUP_S_MAX:
                log.warning("job %s: a task does not end; its staged rows stay", self._job_id)
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S_MAX):
                    await self._stirred.wait()
            self._stirred.clear()

    def _followed(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception():
            self._break(task.exception() or AssertionError())
        self._done.set()

    def _ask(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        """Have the event loop do something."""
        self._up.wait()
        if self._loop is None or not self._thread.is_alive():
            work.close()
            raise self.outcome().error or Unavailable("This run has ended.")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _post(self, call: Callable[[], None]) -> None:
        assert self._loop
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            if not self._loop.is_closed():
                raise


class RunProgress:
    """How far one job has come, what failed, how it ended.  `outcome` is None until it has ended.

    All of it is read from the records; only the errors themselves, with their causes, come straight
    from the attempts and the sinks, because a record keeps no more than their words.
    """

    def __init__(self, say: Callable[[str], None], tables: PatientTables) -> None:
        self.name = ""
        self.outcome: RunOutcome | None = None
        self._say = say
        self._tables = tables
        self._committed = 0
        self._retries: dict[int, int] = {}
        self._errors: dict[tuple[int, str, int], HoldfastError] = {}
        self._ended: dict[TaskKey, Attempt] = {}

    def ended(self, attempt: Attempt) -> None:
        """Take in that an attempt was stopped or has failed."""
        key = attempt.key
        self._ended[key] = attempt
        if attempt.error:
            self._errors[key.pipeline, key.task, attempt.number] = attempt.error

    def see(self, keeper: JobKeeper) -> None:
        """Take in how the job's records stand."""
        pipelines = [p.state for p in keeper.pipelines.values()]
        self._committed = sum(map(_visible, pipelines))
        for pipeline in pipelines:
            before = self._retries.get(pipeline.number, 0)
            self._retries[pipeline.number] = pipeline.retries
            if pipeline.retries > before and pipeline.status is ACTIVE:
                self._say_retry(pipeline)
        job = keeper.state
        if job.status in TERMINAL and self.outcome is None:
            error = self._error(pipelines, job.reason) if job.status is JobStatus.FAILED else None
            self.outcome = RunOutcome(RunStatus(job.status.value), error)

    def view(self, running: Iterable[Attempt]) -> RunView:
        """Return how far the job has come.  Any thread may ask."""
        latest = {**self._ended, **{a.key: a for a in running}}
        counts = [a.tally.counts() for a in latest.values()]
        written: dict[tuple[str, str], tuple[int, int]] = {}
        for one in (w for c in counts for w in c.written):
            rows, size = written.get((one.sink, one.table), (0, 0))
            written[one.sink, one.table] = (rows + one.rows, size + one.bytes)
        moving = [a.tally.moving() for a in latest.values()]
        return RunView(
            name=self.name,
            read=sum(c.read for c in counts),
            written=written,
            committed=self._committed,
            rejected=sum(c.rejected for c in counts),
            moving=Measured(
                sum(m.rows_in for m in moving),
                sum(m.bytes_in for m in moving),
                sum(m.rows_out for m in moving),
                sum(m.bytes_out for m in moving),
            ),
        )

    def _say_retry(self, pipeline: PipelineRecord) -> None:
        last = pipeline.failures[-1]
        error = self._errors.get((pipeline.number, last.task, last.attempt))
        if error and error.code == GONE:
            return  # there is no Spark left to try it on
        latest = pipeline.checkpoints.latest
        self._say(
            f"{str(error or last.reason).rstrip('.')}."
            f" Retry {pipeline.retries} of {pipeline.retry_times}"
            f" in {pipeline.policy.retry_interval_s:g} s,"
            f" from {f'checkpoint {latest.number}' if latest else 'the beginning'}."
        )

    def _error(self, pipelines: list[PipelineRecord], reason: str) -> HoldfastError:
        """Return the very error that failed the job, which says more than its record does."""
        failed = [p for p in pipelines if p.status in (FAILING, FAILED) and p.failures]
        last = failed[0].failures[-1] if failed else None
        known: HoldfastError | None = None
        if last and last.task:
            known = self._errors.get((failed[0].number, last.task, last.attempt))
        elif last and self._tables.error and str(self._tables.error) in last.reason:
            known = self._tables.error
        return known or HoldfastError(reason, code="job.failed")


def _visible(pipeline: PipelineRecord) -> int:
    """Return how many rows the commits so far have made visible."""
    through = pipeline.commits.through
    done = [c for c in pipeline.checkpoints.kept if c.number == through]
    return done[0].totals.written if done else 0


class _Direct:
    """The way to the only worker there is."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker

    def send(self, incarnation: str, message: ToWorker) -> None:
        """Hand a message over, after whatever is being done now."""
        asyncio.get_running_loop().call_soon(self.worker.hear, message)
