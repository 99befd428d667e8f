"""Spark's driver: a JVM of our own, and the session in it.

`begin` starts the JVM and returns at once, so that a job file is read and checked while Spark
boots.  `SparkStartup.session` waits for what is left.  `stop` ends everything within a moment: in
local mode no one waits for a goodbye, so the JVM is killed and its folder deleted.
"""

import atexit
import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import Unavailable, UserError
from holdfast.files import state_dir
from holdfast.files.state_dir import Scratch
from holdfast.spark import java, startup_cache
from holdfast.spark.jvm import (
    COLLECTOR,
    GATEWAY,
    OWN_JAR,
    READY_S_MAX,
    SUBMIT,
    Command,
    Jvm,
    spark_home,
    spark_jars,
    start,
)
from holdfast.spark.settings import SparkSettings, resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOODBYE_S_MAX = 15
"""How long a cluster, or a listener, may take to notice that we end."""

LET_GO_S_MAX = 2
"""How long PySpark may take to release a JVM that is about to be killed: a frozen one does not
answer."""

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""
"""Spark's log goes to the JVM's standard error, and that is the log file."""


class SparkStartup:
    """A Spark that is starting, or has started."""

    def __init__(self, jvm: Jvm, settings: SparkSettings, scratch: Scratch, ready_s: float) -> None:
        self.jvm = jvm
        self.settings = settings
        self._scratch = scratch
        self._stopping = threading.Lock()
        with_thread = ThreadPoolExecutor(1, "spark-start")
        self._session: Future[SparkSession] = with_thread.submit(_attach, jvm, settings, ready_s)
        with_thread.shutdown(wait=False)
        atexit.register(self._stop)

    def session(self) -> "SparkSession":
        """Return the session, waiting for it if need be.  Any thread may call, any number of times.

        Raises Unavailable with the end of the JVM's log if it died, and UserError if Spark refused
        the settings.
        """
        return self._session.result()

    @property
    def started(self) -> bool:
        """Whether the session is there, or never will be."""
        return self._session.done()

    def loss(self, patience_s: float = 0) -> Unavailable | None:
        """Return why the JVM is gone, or None while it is alive.

        A broken connection is seen a moment before the process is gone; who asks after an error
        gives it a second.
        """
        return self.jvm.loss_soon(patience_s)

    def _stop(self) -> None:
        with self._stopping:
            atexit.unregister(self._stop)
            if self.jvm.given_up:
                self.jvm.kill()  # it does not answer, and a caller would wait
            if self.settings.needs_goodbye and self._session.done() and self.jvm.is_alive:
                _say_goodbye(self._session)
            with _detached(self.jvm):
                self.jvm.kill()
                wait([self._session])
            self._scratch.remove()


def begin(
    conf: Mapping[str, str], cores: int | None, log_file: Path, ready_s: float = READY_S_MAX
) -> SparkStartup:
    """Start Spark for a job with these `spark.*` settings, and return at once.

    Everything Spark and its JVM have to say goes to the log file, nothing to the terminal.
    `ready_s`: how long the JVM may take to open its port.
    """
    settings = resolve(conf, cores)
    found = java.find()
    fast = startup_cache.use(found) if not settings.by_submit else []
    return _launch(settings, found, fast, log_file, ready_s)


def begin_recording(cache: Path, log_file: Path) -> SparkStartup:
    """Start Spark so that it writes the start-up cache when it ends."""
    found = java.find()
    return _launch(resolve({}, None), found, _recording_flags(found, cache), log_file, READY_S_MAX)


def stop(starting: SparkStartup) -> None:
    """End Spark and everything it started, and delete its scratch files.  Safe to repeat."""
    starting._stop()


def _launch(
    settings: SparkSettings, found: java.Java, fast: list[str], log_file: Path, ready_s: float
) -> SparkStartup:
    scratch = state_dir.claim_scratch()
    settings = _placed(settings, scratch)
    main = (GATEWAY,) if not settings.by_submit else _submit(settings, scratch)
    flags = [*_flags(settings, scratch), *fast, *settings.java_options]
    jars = [*spark_jars(), str(OWN_JAR), *settings.class_path]
    command = Command(found, jars, flags, main)
    jvm = start(command, _environment(settings, found), scratch.path, log_file)
    return SparkStartup(jvm, settings, scratch, ready_s)


def _placed(settings: SparkSettings, scratch: Scratch) -> SparkSettings:
    """Return the settings with those that say where things are on this machine."""
    if not settings.is_local:
        return settings
    folders = scratch.local_folders(settings.local_folders)
    places = {
        "spark.python.unix.domain.socket.dir": str(scratch.sockets),
        "spark.sql.warehouse.dir": str(state_dir.warehouse()),
        **settings.spark,
        "spark.local.dir": ",".join(map(str, folders)),
    }
    return SparkSettings(**{**vars(settings), "spark": places})


def _flags(settings: SparkSettings, scratch: Scratch) -> list[str]:
    temporary = scratch.path / "tmp"
    temporary.mkdir(exist_ok=True)
    chosen = any(o.startswith("-XX:+Use") and o.endswith("GC") for o in settings.java_options)
    return [
        # A small start; the heap grows when rows come.
        "-Xms256m",
        f"-Xmx{settings.heap}",
        *([] if chosen else [COLLECTOR]),
        "-XX:-UsePerfData",
        # Else the compiler takes a third of the CPU of a job's first twenty seconds.
        "-XX:CompileThresholdScaling=4",
        f"-XX:ErrorFile={state_dir.logs()}/hs_err_%p.log",
        f"-Dlog4j2.configurationFile={_log_settings()}",
        # ORC's writer takes a time by this clock; no file may depend on where it was written.
        "-Duser.timezone=UTC",
        # Native libraries are unpacked here, and a killed JVM does not clean up.
        f"-Djava.io.tmpdir={temporary}",
    ]


def _log_settings() -> Path:
    path = state_dir.cache() / "log4j2.properties"
    if not path.exists() or path.read_text() != _LOG4J:
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.write_text(_LOG4J)
        fresh.rename(path)
    return path


def _submit(settings: SparkSettings, scratch: Scratch) -> tuple[str, ...]:
    """Return the words for Spark's own start-up; the settings go in a file only we can read."""
    path = scratch.path / "submit.properties"
    path.touch(mode=0o600)
    lines = (f"{key}={_escaped(value)}\n" for key, value in settings.spark.items())
    path.write_text("".join(lines))
    return (SUBMIT, "--properties-file", str(path), "pyspark-shell")


def _escaped(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"\\{escaped}" if escaped.startswith((" ", "\t")) else escaped


def _environment(settings: SparkSettings, found: java.Java) -> dict[str, str]:
    # SPARK_HOME would put PySpark's zip, which holds no compiled files, before the installed one.
    dropped = {"SPARK_HOME", "SPARK_LOCAL_DIRS", "SPARK_TESTING", "SPARK_CONNECT_MODE_ENABLED"}
    environ = {key: value for key, value in os.environ.items() if key not in dropped}
    environ |= {"PYTHONHASHSEED": "0", "SPARK_CONNECT_MODE": "0"}
    environ["PYSPARK_PYTHON"] = _python(settings)
    ours = Path(__file__).parents[2]
    if ours.name not in ("site-packages", "dist-packages"):
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ours), os.getenv("PYTHONPATH")]))
    if settings.is_local:
        environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    if settings.by_submit:
        shim = java.submit_home(found, state_dir.cache())
        environ |= {"SPARK_HOME": str(spark_home()), "JAVA_HOME": str(shim)}
    return environ


def _attach(jvm: Jvm, settings: SparkSettings, ready_s: float) -> "SparkSession":
    """Build the session in a JVM that is booting.  Runs in a thread of its own.

    Not in the main thread, where Spark would take over Ctrl-C.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _quieten()
    _keep_pandas_out()
    os.environ["PYSPARK_PYTHON"] = _python(settings)
    port, secret = jvm.wait_ready(ready_s)
    if SparkContext._active_spark_context is not None:
        raise UserError(
            "This process already runs Spark, and can run only one. Stop it first"
            " (spark.stop()), or run the job in a process of its own: holdfast run FILE.",
            code="spark.busy",
        )
    try:
        gateway = jvm.gateway = _connect(port, secret)
        conf = SparkConf(loadDefaults=settings.by_submit, _jvm=gateway.jvm)
        if not settings.by_submit:  # else they came as a file, and Spark has added to them
            for key, value in settings.spark.items():
                conf.set(key, value)
        session = SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (Py4JError, PySparkException, OSError) as error:
        raise jvm.loss_soon() or _refused(error, jvm) from error
    state_dir.wipe_stale()
    return session


def _python(settings: SparkSettings) -> str:
    """Return the Python of Spark's workers: this one, unless a cluster has it somewhere else."""
    if settings.is_local:
        return sys.executable
    named = settings.spark.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    return named or sys.executable


def _refused(error: Exception, jvm: Jvm) -> UserError:
    said = [line.strip() for line in str(error).splitlines() if line.strip(" :.")]
    why = next((line.lstrip(": ") for line in said if "Exception" in line), said[0] if said else "")
    return UserError(
        f"Spark does not start with these settings: {why} Correct the job's spark.* settings."
        f" Spark's log is {jvm.log_file}.",
        code="spark.refused",
    )


def _connect(port: int, secret: str) -> Any:
    from pyspark.java_gateway import launch_gateway

    # With a port in these, PySpark joins a JVM instead of starting one.
    told = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ |= told
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for key in told:
            del os.environ[key]


def _quieten() -> None:
    """Keep PySpark's and py4j's Python logs off the terminal; we say what failed ourselves."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    # py4j logs to the root logger itself when the JVM is gone.
    logging.getLogger().addFilter(_not_py4j)


def _not_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


def _keep_pandas_out() -> None:
    """Let py4j ask whether a value is NumPy's only where NumPy has been imported.

    PySpark asks it of every list and mapping that goes to the JVM, and imports its test tools and
    pandas to find out, which doubles the time to the first job.  And it imports pandas to learn its
    version before it maps Arrow batches, in which there is nothing of pandas.
    """
    from py4j import protocol
    from pyspark.sql.pandas import functions

    functions.require_minimum_pandas_version = _nothing  # type: ignore[attr-defined]

    converters = protocol.INPUT_CONVERTER
    for place, converter in enumerate(converters):
        if type(converter).__name__.startswith("Numpy"):
            converters[place] = _NumpyOnly(converter)


def _nothing() -> None:
    """Require nothing."""


class _NumpyOnly:
    """A converter that looks at NumPy's values only, and asks the real one about those."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def can_convert(self, value: object) -> bool:
        return type(value).__module__ == "numpy" and bool(self._real.can_convert(value))

    def convert(self, value: object, client: object) -> object:
        return self._real.convert(value, client)


def _say_goodbye(session: "Future[SparkSession]") -> None:
    """Stop Spark in order, but not for longer than a bound: a cluster may be gone."""
    if session.exception() is None:
        ending = threading.Thread(target=session.result().stop, daemon=True)
        ending.start()
        ending.join(GOODBYE_S_MAX)


@contextmanager
def _detached(jvm: Jvm) -> Iterator[None]:
    """Take PySpark off the JVM, which ends inside the block, so that another one can start.

    PySpark has no call for this: its own `stop` talks to the JVM and keeps the connection.
    """
    pyspark: Any = sys.modules.get("pyspark")
    gateway = jvm.gateway
    # Another Spark of this process is none of our business.
    ours = gateway is not None and pyspark.SparkContext._gateway is gateway
    context = pyspark.SparkContext._active_spark_context if ours else None
    server = getattr(context, "_accumulatorServer", None)
    if server:
        # The far end is about to vanish, and that is no error to print.
        server.handle_error = lambda *_: None
    if gateway:
        if jvm.is_alive:
            letting_go = threading.Thread(target=gateway.shutdown, daemon=True)
            letting_go.start()
            letting_go.join(LET_GO_S_MAX)
        # From here on the JVM does not learn of objects that Python drops.
        gateway._gateway_client.is_connected = False
    yield
    if server:
        _close_server(server)
    if jvm.gateway is not None:
        pyspark = sys.modules["pyspark"]
        if pyspark.SparkContext._gateway is jvm.gateway:
            _forget(pyspark)


def _forget(pyspark: Any) -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.context import SQLContext

    kind = pyspark.SparkContext
    with kind._lock:
        kind._active_spark_context = kind._gateway = kind._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
    pyspark.accumulators._accumulatorRegistry.clear()


def _close_server(server: Any) -> None:
    """Close PySpark's server for accumulators, which looks up from its work twice a second."""
    closing = threading.Thread(target=server.shutdown, daemon=True)
    closing.start()
    if server.address_family == socket.AF_UNIX and Path(server.server_address).exists():
        with socket.socket(socket.AF_UNIX) as knock:
            knock.connect(server.server_address)
    closing.join(2)


def _recording_flags(found: java.Java, cache: Path) -> list[str]:
    """Return the JVM flags that write a cache when the JVM ends."""
    if found.major >= startup_cache.AOT_MAJOR_MIN:
        return [f"-XX:AOTCacheOutput={cache}", *startup_cache.NO_PROFILES]
    return [f"-XX:ArchiveClassesAtExit={cache}"]
