"""A worker as a process: one Spark, one link to every master, and a restart when Spark dies."""

import asyncio
import logging
import math
import os
import secrets
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast.config import Config
from holdfast.connect.registry import Registry
from holdfast.master.journal import say
from holdfast.process.event_trace import tracer_from_env
from holdfast.process.failpoints import points_from_env
from holdfast.process.links import Dialer
from holdfast.security.identity import client_tls
from holdfast.security.token_files import join_token
from holdfast.spark import session
from holdfast.spark.session import SparkStartup
from holdfast.worker.agent import Worker, WorkerSettings
from holdfast.worker.attempt import Attempt, WorkerRuntime
from holdfast.worker.probe import Bounds, Probe

log = logging.getLogger("holdfast")

GOODBYE_S = 2.0
"""How long closing the links may take."""

LOOK_S = 0.2
"""How often a worker that leaves looks whether a master is connected."""

AGAIN_S = 1.0
"""How long to wait before a restart, if Spark dies at once again and again."""


def run_worker(config: Config, spark_log: Path) -> int:
    """Be a worker until SIGTERM or SIGINT, and return the exit code.

    If Spark's JVM dies, this process starts itself again: only a new process gets another Spark.
    """
    # The JVM boots while the masters are dialled; attempts wait for it in their threads.
    # The probe judges how long Spark may take, and restarts this worker.
    starting = session.begin(config.spark, config.cores or None, spark_log, ready_s=math.inf)
    try:
        code = asyncio.run(_serve(config, starting))
    finally:
        session.stop(starting)
    if code is not None:
        return code
    time.sleep(AGAIN_S)
    return os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


async def _serve(config: Config, starting: SparkStartup) -> int | None:
    """Work until asked to stop; return the exit code, None if Spark is gone."""
    stop, at_once = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: (at_once if stop.is_set() else stop).set())
    incarnation = secrets.token_hex(6)
    bounds = Bounds(config.spark_start_s, config.spark_silent_s)
    probe = Probe(
        starting.jvm, lambda: starting.started, bounds,
        lambda: loop.call_soon_threadsafe(worker.spark_lost.set),
    )  # fmt: skip
    worker, dialer = _built(config, incarnation, starting, probe)
    probe.start()
    say("worker started", name=config.name, incarnation=incarnation, masters=config.masters)
    stopping = asyncio.ensure_future(stop.wait())
    lost = asyncio.ensure_future(worker.spark_lost.wait())
    working = [asyncio.ensure_future(w) for w in (_boot(starting), dialer.run(), worker.run())]
    everything = (stopping, lost, *working)
    try:
        await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
        if not any(t.done() for t in (lost, *working)):
            await _leave(worker, dialer, at_once, (lost, *working), config.leave_s)
        # Ending Spark below looks like losing it, so the reason is taken now.
        ended = [t for t in working if t.done()]
        if lost.done():
            log.error("Spark is gone; this worker restarts. %s", starting.loss() or "")
        # The links go first: the leader then takes this worker for gone, not its tasks for failed.
        await asyncio.wait((asyncio.ensure_future(dialer.close()),), timeout=GOODBYE_S)
        probe.close()
        if probe.trouble.said:
            await asyncio.to_thread(starting.jvm.kill)  # the attempts' threads wait for it
        await worker.stop()
    finally:
        probe.close()
        for task in everything:
            task.cancel()
        await asyncio.to_thread(session.stop, starting)  # ends every wait for the session
        await asyncio.gather(*everything, return_exceptions=True)
    for task in ended if not starting.jvm.given_up else ():
        task.result()  # raises what ended it
    if stop.is_set():
        say("worker stopped")
        return 0
    return None


async def _leave(
    worker: Worker,
    dialer: Dialer,
    at_once: asyncio.Event,
    broken: Iterable["asyncio.Future[Any]"],
    patience_s: float,
) -> None:
    """Wait until the leader has moved the tasks, or says that no worker has room for them.

    The wait ends after `patience_s`, where no master is connected, and at a second signal.
    """
    say("worker leaves; its tasks move to other workers", tasks=len(worker.attempts))
    worker.leave()
    deadline_s = time.monotonic() + patience_s
    ends: list[asyncio.Future[Any]] = [
        asyncio.ensure_future(e.wait()) for e in (worker.released, at_once)
    ]
    try:
        while dialer.linked and time.monotonic() < deadline_s:
            done, _ = await asyncio.wait(
                {*ends, *broken}, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED
            )
            if done:
                break
    finally:
        for end in ends:
            end.cancel()
    if worker.attempts and not worker.released.is_set():
        log.warning(
            "worker ends with %d tasks on it, which start again on other workers",
            len(worker.attempts),
        )


def _built(
    config: Config, incarnation: str, starting: SparkStartup, probe: Probe
) -> tuple[Worker, Dialer]:
    """Put a worker together, and its links."""
    token = join_token(config, create=True)
    tracer = tracer_from_env(os.environ, f"{config.name}#{incarnation}")
    points = points_from_env(os.environ, log.warning)
    registry = Registry.load(config.plugins)
    runner = WorkerRuntime(registry, starting.session, starting.loss, points.pass_now)
    settings = WorkerSettings(config.beat_s, config.orphan_s)
    worker = Worker(
        config.name, incarnation, config.slots, config.tags, runner,
        lambda message: dialer.send(message), settings, tracer.note if tracer else _unobserved,
        _say_ended, lambda: probe.trouble,
    )  # fmt: skip
    dialer = Dialer(config.masters, token, worker.hello, worker.hear, say, client_tls(config))
    return worker, dialer


async def _boot(starting: SparkStartup) -> None:
    """Wait for Spark.  Ends only if it does not start."""
    await asyncio.to_thread(starting.session)
    say("Spark is ready")
    await asyncio.Event().wait()


def _unobserved(*_about: object, **_facts: object) -> None:
    """Ignore an event: no test reads it."""


def _say_ended(attempt: Attempt) -> None:
    say(
        f"attempt ended: {attempt.failure or 'stopped'}", job_id=attempt.key.job,
        task=attempt.key.task, attempt=attempt.number,
    )  # fmt: skip
