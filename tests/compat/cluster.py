"""Run the compat suite through `submit` to a cluster: one master on SQLite, one worker.

    python -m tests.compat.cluster DIRECTORY [part of a file name]

The job files, what they need and how each must end are those of `tests.compat.run`; only the way in
is another.  Several jobs run at a time.
"""

import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from holdfast.api.views import ENDED, Accepted, JobDetail
from holdfast.cli.job_file import read_tree
from holdfast.cli.run import report_for
from holdfast.client import Client
from holdfast.errors import HoldfastError
from holdfast.model.secret import Secret
from holdfast.plan.record import JobSource, encode_spec
from tests.chaos.engine.servers import free_ports
from tests.compat.run import (
    BATCH_S_MAX,
    CANCEL_S_MAX,
    STREAM_S_MAX,
    Ended,
    about_unknown,
    as_expected,
    show,
)
from tests.compat.suite import Case, deferred, load_cases, set_up

AT_ONCE = 3
SLOTS = 32
WORKER_S_MAX = 180.0
QUEUE_S = 60.0
"""How much longer than alone a job may take: others run beside it."""

TAGS = "strategy=system_load2"
LOOK_S = 0.1


class Cluster:
    """The processes of one run, in a folder."""

    def __init__(self, folder: Path) -> None:
        (port,) = free_ports(1)
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        self.token = secrets.token_hex(16)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.environ = {
            **os.environ,
            "HOLDFAST_AOT": "use",
            "HOLDFAST_HOME": str(folder / "home"),
            "HOLDFAST_STORE": f"sqlite:{folder / 'store.db'}",
            "HOLDFAST_BLOBS": str(folder / "blobs"),
            "HOLDFAST_LISTEN": f"127.0.0.1:{port}",
            "HOLDFAST_MASTERS": self.url,
            "HOLDFAST_TOKEN": self.token,
            "HOLDFAST_TOO_LARGE": "refuse",
            "HOLDFAST_LOGS": str(folder / "logs"),
        }

    def start(self, name: str, verb: str, **environ: str) -> None:
        """Start a process."""
        with (self.folder / f"{name}.out").open("ab") as out:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "holdfast", verb],
                env={**self.environ, "HOLDFAST_NAME": name, **environ},
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip

    def worker(self, name: str, slots: int) -> None:
        """Start a worker, and wait until the master hears it."""
        self.start(name, "worker", HOLDFAST_SLOTS=str(slots), HOLDFAST_TAGS=TAGS)
        deadline = time.monotonic() + WORKER_S_MAX
        client = self.client()
        try:
            while name not in [w.worker for w in client.cluster().workers]:
                assert time.monotonic() < deadline, f"{name} did not come"
                time.sleep(LOOK_S)
        except (AssertionError, HoldfastError):
            print(self.said("M1"), self.said(name), sep="\n")
            raise

    def stop(self, name: str) -> None:
        """Have a process stop, as an operator does."""
        process = self.processes.pop(name)
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def client(self) -> Client:
        """Return a client of its own for a thread."""
        return Client([self.url], Secret(self.token), 60.0)

    def said(self, name: str) -> str:
        """Return the end of what a process said."""
        return (self.folder / f"{name}.out").read_text(errors="replace")[-2000:]

    def rows_shown(self) -> int:
        """Return how many rows the worker's Console sinks have printed."""
        return (self.folder / "W1.out").read_text(errors="replace").count("Row#")


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A master and a worker, for as long as the block lasts."""
    started = Cluster(folder)
    try:
        started.start("M1", "master")
        started.worker("W1", SLOTS)
        yield started
    finally:
        for name in reversed(list(started.processes)):
            started.stop(name)


def main() -> int:
    """Run the suite named on the command line; 0 if every file ends as expected."""
    suite = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/compat").resolve()
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    if not (suite / "expect.json").is_file():
        print(f"compat: {suite} has no expect.json; give a directory with jobs/ and expect.json.")
        return 2
    cases = [c for c in load_cases(suite) if only in str(c.path)]
    scratch = Path(tempfile.mkdtemp(prefix="holdfast-compat-"))
    data = scratch / "seatunnel"
    shutil.copytree(suite / "seatunnel", data)
    logging.getLogger("holdfast").addHandler(logging.NullHandler())
    few = [c for c in cases if c.slots is not None]
    late = [c for c in cases if c not in few and deferred(c, data)]
    alone = [c for c in cases if c not in few and c not in late and c.streaming]
    first = [c for c in cases if c not in few and c not in late and c not in alone]
    try:
        with cluster(scratch) as there:
            ended = run_all(there, first, data, AT_ONCE)
            # That rows move is partly seen from what the worker prints, so nobody else may print.
            ended += run_all(there, alone, data, 1)
            # These read what others have written, the others of them included.
            ended += run_all(there, late, data, 1)
            for case in few:
                there.stop(next(n for n in there.processes if n.startswith("W")))
                there.worker("W-few", case.slots or 0)
                ended += run_all(there, [case], data, 1)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return show(ended)


def run_all(
    there: Cluster, cases: list[Case], data: Path, at_once: int
) -> list[tuple[Case, Ended]]:
    """Run some files, so many at a time; each in a folder of its own."""
    own = threading.local()

    def one(numbered: tuple[int, Case]) -> tuple[Case, Ended]:
        if not hasattr(own, "client"):
            own.client = there.client()
        number, case = numbered
        folder = there.folder / "cases" / f"{case.path.parent.name}-{case.name}-{number}"
        return case, run_case(there, own.client, case, folder, data)

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, enumerate(cases)))


def run_case(there: Cluster, client: Client, case: Case, folder: Path, data: Path) -> Ended:
    """Submit one job file as a user would, follow it, and say how it ended."""
    started = time.monotonic()
    copy = set_up(case, folder, data)
    note = ""
    try:
        accepted = submit(client, copy, case)
        job, note = accepted.job_id, about_unknown(accepted.warnings)
        now = follow(there, client, case, job)
        code = 0 if now.status in ("FINISHED", "CANCELED") else 1
        reason = now.reason or now.status if code else ""
        if now.status == "CANCELED" and not case.streaming:
            code, reason = 1, "still running when its time was up"
    except HoldfastError as error:
        code, reason = 1, str(error)
    seconds = time.monotonic() - started
    ended = Ended(code, reason.splitlines()[0] if reason else "", seconds, note)
    word = "ok  " if as_expected(case, ended) else "MISS"
    print(f"{word} {seconds:5.1f} s  {case.name}", flush=True)
    return ended


def submit(client: Client, copy: Path, case: Case) -> Accepted:
    """Do what SeaTunnel's flags do here: `-c FILE -m cluster`."""
    report = report_for(copy, lenient=False, allow_unset=False)
    tree = read_tree(copy, case.variables, report)
    text = encode_spec(JobSource(str(copy), tree, lenient=report.lenient))
    return client.submit(text, secrets.token_hex(16), str(time.time_ns())[:18])


def follow(there: Cluster, client: Client, case: Case, job: str) -> JobDetail:
    """Follow a job to its end; a streaming one until rows have moved, then cancel it."""
    limit_s = STREAM_S_MAX if case.streaming else BATCH_S_MAX
    deadline = time.monotonic() + limit_s + QUEUE_S
    shown, moved = there.rows_shown(), False
    while True:
        now = client.job(job)
        # A sink that delays each row has moved some long before its first slice is done.
        moved = bool(now.written or any(t.written for p in now.pipelines for t in p.tasks))
        moved = moved or (case.streaming and now.status == "RUNNING" and there.rows_shown() > shown)
        if now.status in ENDED:
            return now
        if (case.streaming and moved) or time.monotonic() > deadline:
            break
        time.sleep(LOOK_S)
    client.cancel(job)
    deadline = time.monotonic() + CANCEL_S_MAX
    while client.job(job).status not in ENDED:
        assert time.monotonic() < deadline, f"{case.name} does not cancel"
        time.sleep(LOOK_S)
    if case.streaming and not moved:
        raise HoldfastError(f"no row moved within {limit_s:.0f} s")
    return client.job(job)


if __name__ == "__main__":
    sys.exit(main())
