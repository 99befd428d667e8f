"""A cluster to look at: a master, a worker, the pages, two live jobs.  Ctrl-C takes it all away.

Run it with: make demo-cluster
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import holdfast

JOBS = ("orders_stream.conf", "visits_stream.conf")
START_S = 180.0
END_S = 40.0


def main() -> int:
    """Start it, say where to look, and wait for Ctrl-C."""
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as scratch:
        folder = Path(scratch)
        url, token = f"http://127.0.0.1:{free_port()}", secrets.token_urlsafe(18)
        environ = {
            **os.environ,
            "HOLDFAST_HOME": str(folder / "home"),
            "HOLDFAST_STORE": f"sqlite:{folder / 'store.db'}",
            "HOLDFAST_BLOBS": str(folder / "blobs"),
            "HOLDFAST_LOGS": str(folder / "logs"),
            "HOLDFAST_LISTEN": url.removeprefix("http://"),
            "HOLDFAST_MASTERS": url,
            "HOLDFAST_TOKEN": token,
        }
        running = {verb: start(verb, environ, folder) for verb in ("master", "worker")}
        try:
            return perform(url, token, folder, running, asked)
        finally:
            end(running)


def perform(
    url: str,
    token: str,
    folder: Path,
    running: dict[str, "subprocess.Popen[bytes]"],
    asked: threading.Event,
) -> int:
    """Submit the jobs, and wait until somebody has seen enough."""
    print("Starting a master and a worker; Spark takes some seconds.", flush=True)
    client = holdfast.Client(url, token, START_S)
    here = Path(__file__).parent
    for name in JOBS:
        file = here / name
        accepted = client.submit_text(
            file.read_text(), job_id=file.stem, variables={"OUT": str(folder / "lake")}
        )
        print(f"Job {accepted.job_id} ({accepted.name}) was accepted.")
    print(
        f"\n  the pages   {url}\n  token       {token}\n  rows        {folder / 'lake'}\n"
        f"  logs        {folder}/master.out, worker.out\n"
        f"\n  Try: HOLDFAST_MASTERS={url} HOLDFAST_TOKEN={token} {sys.executable} -m holdfast list"
        "\n\nCtrl-C ends both processes and removes everything.",
        flush=True,
    )
    while not asked.wait(0.5):
        for verb, process in running.items():
            if process.poll() is not None:
                said = (folder / f"{verb}.out").read_text()[-2000:]
                print(f"The {verb} ended with exit code {process.returncode}:\n{said}")
                return 1
    print("\nEnding the worker and the master, and removing the folder.", flush=True)
    return 0


def start(verb: str, environ: dict[str, str], folder: Path) -> "subprocess.Popen[bytes]":
    """Start a process with its output in a file; Ctrl-C does not reach it by itself."""
    with (folder / f"{verb}.out").open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast", verb], env=environ, stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip


def end(running: dict[str, "subprocess.Popen[bytes]"]) -> None:
    """End the processes, the worker first, and wait for them."""
    for process in reversed(running.values()):
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
