"""The verbs about one worker: free it of tasks before its machine goes, and take it back."""

import sys
import time
from typing import Annotated

import typer

from holdfast.cli.crew import leaving_lines
from holdfast.cli.flags import Masters, NodeFile, Patience, Token
from holdfast.cli.follow import EVERY_S, TIMED_OUT
from holdfast.cli.masters import client_for
from holdfast.cli.run import Debug
from holdfast.cli.terminal import screen
from holdfast.client import POLL_S, Client

OneWorker = Annotated[str, typer.Argument(metavar="WORKER", help="The worker's name.")]
WaitFree = Annotated[
    bool, typer.Option("--wait/--async", help="Wait until no task is on it any more.")
]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS",
        help="Wait no longer; the drain goes on, and the exit code is 124. 0: for ever.",
    ),
]  # fmt: skip


def drain(
    worker: OneWorker,
    wait: WaitFree = True,
    timeout: Timeout = 0.0,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    debug: Debug = False,
) -> None:
    """Have a worker get no task and its tasks go on elsewhere, without a retry.  `undrain` ends it.

    It holds for the worker's name until it is undone, also if the worker or the masters are
    started anew.
    """
    client = client_for(masters, node_config, token_file, patience)
    client.drain(worker)
    if not wait:
        screen.print(f"{worker} is DRAINING; `holdfast undrain {worker}` ends that.", markup=False)
        return
    _until_free(client, worker, timeout)
    screen.print(
        f"{worker} is free of tasks and gets none; `holdfast undrain {worker}` ends that.",
        markup=False,
    )


def undrain(
    worker: OneWorker,
    masters: Masters = None,
    node_config: NodeFile = None,
    token_file: Token = None,
    patience: Patience = 30.0,
    debug: Debug = False,
) -> None:
    """Have a worker that was drained get tasks again."""
    client_for(masters, node_config, token_file, patience).undrain(worker)
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
            screen.print(f"{worker} is not free after {timeout_s:g} s; the drain goes on.")
            sys.exit(TIMED_OUT)
        time.sleep(POLL_S)
