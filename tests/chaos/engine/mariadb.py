"""A real MariaDB server: the machine's own, or one unpacked from Debian's packages.

The packages are kept in a cache folder (`XDG_CACHE_HOME`, else `~/.cache`); nothing is installed.
"""

import getpass
import os
import shutil
import signal
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

from holdfast.errors import UserError
from tests.chaos.engine.servers import Server, free_ports
from tools.debian import NoPackage, unpacked

PACKAGES = ("mariadb-server-core", "libaio1", "liburing2", "libnuma1")
SYSTEM_TABLES = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")


class NoMariaDb(UserError):
    """There is no MariaDB server here and none could be fetched; the message says why."""


def find_root() -> Path:
    """Return the folder that has `usr/sbin/mariadbd` in it; unpack one if the machine has none."""
    if shutil.which("mariadbd") or Path("/usr/sbin/mariadbd").exists():
        return Path("/")
    try:
        return unpacked("mariadb", *PACKAGES)
    except NoPackage as error:
        raise NoMariaDb(f"There is no MariaDB server, and {error}") from error


class MariaDb(Server):
    """A MariaDB server that listens on this machine alone; user `root` has the password `hush`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder.absolute())
        self.root = find_root()
        (self.port,) = free_ports(1)
        self._environment: dict[str, str] = dict(os.environ)
        if self.root != Path("/"):
            libraries = [*self.root.glob("usr/lib/*-linux-gnu"), *self.root.glob("lib/*-linux-gnu")]
            self._environment["LD_LIBRARY_PATH"] = ":".join(str(p) for p in libraries)
        share = self.root / "usr/share/mysql"
        self._command = [
            str(self.root / "usr/sbin/mariadbd"), "--no-defaults", f"--user={getpass.getuser()}",
            f"--datadir={self.folder / 'data'}", f"--lc-messages-dir={share}",
            f"--character-sets-dir={share / 'charsets'}",
            f"--plugin-dir={self.root / 'usr/lib/mysql/plugin'}", f"--tmpdir={self.folder}",
            f"--socket={self.folder / 'socket'}", f"--pid-file={self.folder / 'pid'}",
            "--innodb-buffer-pool-size=64M", "--skip-log-bin",
        ]  # fmt: skip

    def url(self, port: int) -> str:
        """Return the URL of the database `test`, as Java's driver would have it."""
        return f"jdbc:mariadb://127.0.0.1:{port}/test"

    def start(self) -> None:
        """Start, or go on with what is there."""
        if not (self.folder / "data").exists():
            self._bootstrap()
        listen = ["--bind-address=127.0.0.1", f"--port={self.port}", "--skip-name-resolve"]
        self._launch([*self._command, *listen], env=self._environment)
        if not self._wait():
            raise UserError(f"MariaDB ended at its start; see {self.folder / 'log'}.")

    def remove(self) -> None:
        """End it for good."""
        self._end(signal.SIGTERM)

    def connect(self, **options: Any) -> Any:
        """A connection of the test's own."""
        return driver().connect(
            host="127.0.0.1", port=self.port, user="root", password="hush", autocommit=True,
            **{"database": "test", **options},
        )  # fmt: skip

    def _bootstrap(self) -> None:
        (self.folder / "data").mkdir()
        share = self.root / "usr/share/mysql"
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
            [*self._command, "--bootstrap", "--skip-networking"], input="\n".join(script),
            capture_output=True, text=True, env=self._environment, check=False,
        )  # fmt: skip
        if done.returncode:
            raise UserError(f"MariaDB could not be set up: {done.stderr[-2_000:]}")

    def _ready(self) -> bool:
        try:
            self.connect().close()
        except driver().err.OperationalError:
            return False
        return True


def driver() -> Any:
    """Return PyMySQL, which has no types."""
    return import_module("pymysql")
