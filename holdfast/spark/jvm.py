"""Start Spark's JVM ourselves, and end it.

PySpark would run a shell script that runs a JVM that prints the command line of a second JVM, and
would wait for it before it does anything else.  We start the second one directly and at once.  That
also runs on a Java without `jdk.incubator.vector`, which the script asks for in vain.

The JVM writes its port and secret to a file when it is ready.  It dies with us: the kernel kills it
when the thread that started it ends (Linux), and elsewhere it ends when its standard input closes.
"""

import ctypes
import importlib.util
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import Unavailable, UserError
from holdfast.spark.java import Java

GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
SUBMIT = "org.apache.spark.deploy.SparkSubmit"

CONNECTION = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""The variable that names the file for the JVM's port and secret."""

READY_S_MAX = 120
"""How long a JVM may take to open its port.  A loaded machine needs ten seconds."""

_OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio",
    "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref",
    "sun.nio.ch", "sun.nio.cs", "sun.util.calendar",
)  # fmt: skip

_MODULE_FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
)

COLLECTOR = "-XX:+UseG1GC"
"""Chosen by measurement: see docs/decisions/0003-own-jvm-launch.md."""


def spark_home() -> Path:
    """Return where PySpark is installed, without importing it, which takes half a second."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None, "pyspark is a dependency"
    return Path(spec.origin).parent


OWN_JAR = Path(__file__).with_name("jars") / "holdfast.jar"
"""Our helper jar for the JVM; `make jar` builds it."""


def spark_jars() -> list[str]:
    """Return Spark's jars, in the same order every time: a start-up cache knows them by it."""
    return sorted(str(jar) for jar in (spark_home() / "jars").glob("*.jar"))


def module_flags(major: int) -> tuple[str, ...]:
    """Return what Spark's launcher passes, less the module that the Java from PyPI lacks."""
    gone = () if major >= 24 else ("--add-opens=java.base/sun.security.action=ALL-UNNAMED",)
    return (*_MODULE_FLAGS, *gone)


@dataclass(frozen=True)
class Command:
    """What to start, apart from where its log and its scratch files go."""

    java: Java
    class_path: Sequence[str]
    flags: Sequence[str]
    main: Sequence[str] = (GATEWAY,)

    def words(self) -> list[str]:
        """Return the command line."""
        path = os.pathsep.join(self.class_path)
        opened = module_flags(self.java.major)
        return [str(self.java.executable), *opened, *self.flags, "-cp", path, *self.main]


class Jvm:
    """A running Spark JVM."""

    def __init__(
        self, process: subprocess.Popen[bytes], connection: Path, log_file: Path, log_start: int
    ) -> None:
        self.process = process
        self.log_file = log_file
        self.gateway: Any = None  # PySpark's connection to it, once there is one
        self.address: tuple[int, str] | None = None  # its port and secret, once it listens
        self.given_up = ""
        self._connection = connection
        self._log_start = log_start

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def wait_ready(self, patience_s: float = READY_S_MAX) -> tuple[int, str]:
        """Wait until the JVM listens; return its port and secret."""
        deadline = time.monotonic() + patience_s
        while not self._connection.exists():
            if self.given_up or not self.is_alive:
                raise self.loss()
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"Spark's Java process was not ready after {patience_s:g} seconds."
                    f" Its log is {self.log_file}.",
                    code="spark.slow",
                )
            time.sleep(0.005)
        # Spark renames the file into place, so what is there is whole.
        told = self._connection.read_bytes()
        port, length = struct.unpack(">ii", told[:8])
        self.address = port, told[8 : 8 + length].decode()
        return self.address

    def give_up(self, why: str) -> None:
        """Count it as gone from now on.  It may live, and somebody must kill it."""
        self.given_up = why

    def loss(self) -> Unavailable:
        """Return the error that says why the JVM is gone.  Only once it is."""
        if self.given_up:
            return Unavailable(self.given_up, code="spark.gone")
        code = self.process.wait()
        said = self._tail()
        why = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        if "OutOfMemoryError" in said:
            advice = "It ran out of memory: set spark.driver.memory (or HOLDFAST_DRIVER_MEMORY)."
        elif code == -signal.SIGKILL:
            advice = (
                "If it was not killed, the machine ran out of memory: lower spark.driver.memory."
            )
        else:
            advice = f"Its log is {self.log_file}."
        tail = f" The log ends with:\n{said}" if said else ""
        return Unavailable(f"Spark's Java process {why}. {advice}{tail}", code="spark.gone")

    def loss_soon(self, patience_s: float = 1.0) -> Unavailable | None:
        """Return why the JVM is gone, or None if it is alive after that time."""
        try:
            if not self.given_up:
                self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None
        return self.loss()

    def close(self, wait_s: float) -> None:
        """Ask the JVM to end by itself, as its caches need; kill it if it takes longer."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(wait_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the JVM and all it started, now.  Safe to repeat.

        Spark's Python workers end by themselves when they see the JVM go; any that has not done so
        after a second is killed.
        """
        children = _descendants(self.process.pid) if self.is_alive else {}
        self.process.kill()
        self.process.wait()
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        _end(children)

    def _tail(self, lines: int = 15) -> str:
        with self.log_file.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._log_start, size - 8192))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


def start(command: Command, environ: Mapping[str, str], scratch: Path, log_file: Path) -> Jvm:
    """Start a JVM and return at once.  What it prints goes to the log file."""
    connection = scratch / "connection"
    connection.unlink(missing_ok=True)
    log_file.parent.mkdir(parents=True, exist_ok=True)
    log_start = log_file.stat().st_size if log_file.exists() else 0
    try:
        process = _spawn(command, {**environ, CONNECTION: str(connection)}, log_file)
    except OSError as error:
        raise UserError(
            f"{command.java} cannot be started: {error.strerror}. Set HOLDFAST_JAVA_HOME to one"
            " that can.",
            code="java.broken",
        ) from error
    return Jvm(process, connection, log_file, log_start)


def _spawn(command: Command, environ: Mapping[str, str], log_file: Path) -> subprocess.Popen[bytes]:
    with log_file.open("ab") as log:
        return _from_lasting_thread(
            lambda: subprocess.Popen(
                command.words(),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environ,
                preexec_fn=_child_setup(),
            )
        )


def _from_lasting_thread(
    launch: Callable[[], subprocess.Popen[bytes]],
) -> subprocess.Popen[bytes]:
    """Start a process from a thread that runs as long as this process.

    The kernel's "die with your parent" means the thread that forked, not the process.  The main
    thread lasts; a call from any other goes through a thread that is parked for good.
    """
    if threading.current_thread() is threading.main_thread():
        return launch()
    started: Future[subprocess.Popen[bytes]] = Future()

    def park() -> None:
        try:
            started.set_result(launch())
        except OSError as error:
            started.set_exception(error)
        else:
            started.result().wait()

    threading.Thread(target=park, name="jvm-parent", daemon=True).start()
    return started.result()


def _child_setup() -> Callable[[], None]:
    """Return what the child does before it becomes the JVM.  Everything is loaded beforehand."""
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def setup() -> None:
        # Ctrl-C reaches the whole terminal; what it means is for us to say.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if prctl:
            prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            if os.getppid() != parent:
                os._exit(1)  # we died before the kernel noted it

    return setup


def _descendants(pid: int) -> dict[int, str]:
    """Return the processes below `pid`, each with the time it started, to tell it from a later
    process of the same number.  Empty where there is no /proc."""
    parents: dict[int, tuple[int, str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        facts = _stat(folder)
        if facts:
            parents[int(folder.name)] = (int(facts[1]), facts[19])
    found: dict[int, str] = {}
    fresh = {pid}
    while fresh:
        below = {child for child, (parent, _) in parents.items() if parent in fresh}
        fresh = below - found.keys()
        found |= {child: parents[child][1] for child in fresh}
    return found


def stands_still(pid: int) -> bool:
    """Say whether the kernel has stopped a process; no where there is no /proc."""
    facts = _stat(Path(f"/proc/{pid}"))
    return bool(facts) and facts[0] in ("T", "t")


def _stat(folder: Path) -> list[str]:
    """Return the fields after the name in /proc/<pid>/stat: state, parent, ... start time."""
    try:
        return (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _end(processes: Mapping[int, str], patience_s: float = 1.0) -> None:
    for pid in _still_there(processes, patience_s):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    _still_there(processes, patience_s)


def _still_there(processes: Mapping[int, str], patience_s: float) -> dict[int, str]:
    """Wait until the processes have ended, but not for long; return those that have not."""
    deadline = time.monotonic() + patience_s
    left = dict(processes)
    while left := {pid: since for pid, since in left.items() if _runs(pid, since)}:
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return left


def _runs(pid: int, since: str) -> bool:
    facts = _stat(Path(f"/proc/{pid}"))
    return bool(facts) and facts[19] == since and facts[0] != "Z"
