"""The verbs about one worker: free it of tasks before its machine goes, and take it back."""

import sys
import time
from typing import Annotated

import typer

from holdfast.api.views import ClusterView, WorkerView
from holdfast.cli.cluster_verb import (
    Connect,
    cluster_verb,
)
from holdfast.cli.follow import EVERY_S, TIMED_OUT
from holdfast.cli.terminal import screen
from holdfast.client import POLL_S, Client

OneWorker = Annotated[str, typer.Argument(metavar="WORKER", help="The worker's name.")]
WaitFree = Annotated[bool, typer.Option("--wait/--async", help="Wait until it holds no task.")]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS",
        help="Stop waiting then; the drain continues, and the exit code is 124. 0: no limit.",
    ),
]  # fmt: skip


@cluster_verb
def drain(
    connect: Connect,
    worker: OneWorker,
    wait: WaitFree = True,
    timeout: Timeout = 0.0,
) -> None:
    """Drain a worker: it gets no task, and its tasks move without a retry.  `undrain` ends it.

    It holds for the worker's name until it is undone, even if the worker or the masters restart.
    """
    client = connect()
    client.drain(worker)
    if not wait:
        screen.print(f"{worker} is DRAINING; `holdfast undrain {worker}` ends that.", markup=False)
        return
    _until_free(client, worker, timeout)
    screen.print(
        f"{worker} is free of tasks and gets none; `holdfast undrain {worker}` ends that.",
        markup=False,
    )


@cluster_verb
def undrain(
    connect: Connect,
    worker: OneWorker,
) -> None:
    """Let a drained worker get tasks again."""
    connect().undrain(worker)
    screen.print(f"{worker} gets tasks again.", markup=False)


def _until_free(client: Client, worker: str, timeout_s: float) -> None:
    """Wait until a worker holds no task, and say what it waits for when that changes."""
    begun_s = said_s = time.monotonic()
    said: list[str] = []
    while True:
        found = client.cluster()
        here = [w for w in found.workers if w.worker == worker]
        if not any(w.tasks or w.used for w in here):
            return
        now_s, lines = time.monotonic(), leaving_lines(found, worker)
        if lines != said or now_s - said_s >= EVERY_S:
            said, said_s = lines, now_s
            screen.print("\n".join(lines), markup=False)
        if timeout_s and now_s - begun_s >= timeout_s:
            screen.print(f"{worker} is not free after {timeout_s:g} s; the drain continues.")
            sys.exit(TIMED_OUT)
        time.sleep(POLL_S)


def state_of(worker: WorkerView) -> str:
    """Return the state of a worker in a word."""
    return "TROUBLE" if worker.trouble else "DRAINING" if worker.draining else "ready"


def trouble_lines(found: ClusterView) -> list[str]:
    """Say what is wrong with workers."""
    return [f"{w.worker} is in TROUBLE: {w.trouble}" for w in found.workers if w.trouble]


def leaving_lines(found: ClusterView, name: str = "") -> list[str]:
    """Return why workers are draining and where their tasks move; of one worker or of all."""
    lines = []
    for w in found.workers:
        if not w.draining or (name and w.worker != name):
            continue
        lines.append(f"{w.worker} is DRAINING: {w.draining}; it holds {_tasks(len(w.tasks))}")
        lines += [f"  job {t.job_id}, task {t.task} {t.moves or 'is leaving'}" for t in w.tasks]
    there = {w.worker for w in found.workers}
    absent = [n for n in found.drained if n not in there and name in ("", n)]
    return [*lines, *(f"{n} is DRAINING and not in contact" for n in absent)]


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count or 'no'} tasks"
