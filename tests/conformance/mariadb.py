"""A real MariaDB server for tests: the machine's own, or one unpacked from Debian's packages.

The packages are kept in a cache folder (`XDG_CACHE_HOME`, else `~/.cache`); nothing is installed,
and nobody needs to be root.
"""

import getpass
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pymysql

from tests.conformance.servers import START_S, Server, free_ports

PACKAGES = ("mariadb-server-core", "libaio1", "liburing2", "libnuma1")
SYSTEM_TABLES = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
DOWNLOAD_S = 300


class NoMariaDb(Exception):
    """There is no MariaDB server here and none could be fetched; the message says why."""


def find_root() -> Path:
    """Return the folder that has `usr/sbin/mariadbd` in it; unpack one if the machine has none."""
    if shutil.which("mariadbd") or Path("/usr/sbin/mariadbd").exists():
        return Path("/")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = cache / "holdfast" / "mariadb"
    if not (root / "usr/sbin/mariadbd").exists():
        _unpack(root)
    return root


def _unpack(root: Path) -> None:
    fetched = root.with_name(f"{root.name}.{os.getpid()}")
    (fetched / "packages").mkdir(parents=True)
    try:
        _run(["apt-get", "download", *PACKAGES], fetched / "packages")
        for package in sorted((fetched / "packages").glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(fetched)], fetched)
        if root.exists():  # another run was faster, or one was cut short
            shutil.rmtree(root)
        fetched.rename(root)
    finally:
        shutil.rmtree(fetched, ignore_errors=True)


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoMariaDb(f"{' '.join(command)}: {error}") from error
    if done.returncode:
        raise NoMariaDb(f"{' '.join(command)}: {done.stderr.strip()}")


class MariaDb(Server):
    """A MariaDB server that listens on this machine alone; user `root` has the password `hush`."""

    def __init__(self) -> None:
        super().__init__()
        self.root = find_root()
        (self.port,) = free_ports(1)
        share = self.root / "usr/share/mysql"
        libraries = [str(p) for p in self.root.glob("usr/lib/*-linux-gnu")] if self.root else []
        libraries += [str(p) for p in self.root.glob("lib/*-linux-gnu")]
        self.environment: dict[str, str] = dict(os.environ)
        if self.root != Path("/"):
            self.environment["LD_LIBRARY_PATH"] = ":".join(libraries)
        self.command = [
            str(self.root / "usr/sbin/mariadbd"), "--no-defaults", f"--user={getpass.getuser()}",
            f"--datadir={self.folder / 'data'}", f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
            f"--plugin-dir={self.root / 'usr/lib/mysql/plugin'}", f"--tmpdir={self.folder}",
            f"--socket={self.folder / 'socket'}", f"--pid-file={self.folder / 'pid'}",
            "--innodb-buffer-pool-size=64M", "--skip-log-bin",
        ]  # fmt: skip
        self._bootstrap(share)

    def _bootstrap(self, share: Path) -> None:
        (self.folder / "data").mkdir()
        # In this mode each line is a statement, or a part of one.
        script = ["CREATE DATABASE mysql;", "USE mysql;"]
        script += [(share / name).read_text() for name in SYSTEM_TABLES]
        script += [
            "FLUSH PRIVILEGES;",
            "CREATE OR REPLACE USER root@'127.0.0.1' IDENTIFIED BY 'hush';",
            "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;",
            "CREATE DATABASE test;\n",
        ]
        done = subprocess.run(
            [*self.command, "--bootstrap", "--skip-networking"], input="\n".join(script),
            capture_output=True, text=True, env=self.environment, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4_000:]

    def start(self) -> None:
        listen = ["--bind-address=127.0.0.1", f"--port={self.port}", "--skip-name-resolve"]
        self.launch([*self.command, *listen], env=self.environment)
        deadline = time.monotonic() + START_S
        while True:
            assert self.process is not None
            assert self.process.poll() is None, self.log_text()
            try:
                self.connect().close()
                return
            except pymysql.err.OperationalError:
                assert time.monotonic() < deadline, self.log_text()
                time.sleep(0.05)

    @property
    def url(self) -> str:
        return f"jdbc:mariadb://127.0.0.1:{self.port}/test"

    def connect(self, **options: Any) -> "pymysql.connections.Connection[Any]":
        """A connection of the test's own."""
        return pymysql.connect(
            host="127.0.0.1", port=self.port, user="root", password="hush", autocommit=True,
            **{"database": "test", **options},
        )  # fmt: skip

    def remove(self) -> None:
        self.end(signal.SIGTERM)
        super().remove()
