"""The Spark settings Holdfast runs with, and why each is there.

A job's own `spark.*` settings win over ours, with three exceptions: what sizes a cluster has no
meaning where there is none; `local` means all cores, as one core is too few; and what would
start another kind of Spark is refused.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.errors import UserError

SPARK_CONF = {
    "spark.app.name": "holdfast",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Times without a zone mean the same on every machine.
    "spark.sql.session.timeZone": "UTC",
    "spark.executor.defaultJavaOptions": "-Duser.timezone=UTC",
    # SeaTunnel has a TIME type; Spark 4.3 has one behind this switch.
    "spark.sql.timeType.enabled": "true",
    # Python tasks stall about 40 ms each on loopback TCP without it.
    "spark.python.unix.domain.socket.enabled": "true",
    # Workers fork from a process that has imported Arrow: see that module.
    "spark.python.daemon.module": "holdfast.spark.python_daemon",
    # Each DataFrame call would otherwise record its Python caller.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Below 48 MB Spark would turn Arrow into rows in the driver, five times slower.
    "spark.sql.execution.arrow.localRelationThreshold": "1b",
    # Progress is read from task metrics, which travel with the heartbeat.
    "spark.executor.heartbeatInterval": "5s",
    # Lake formats and other readers want plain microseconds, not INT96.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # One task's slices take turns with another's.
    "spark.scheduler.mode": "FAIR",
    # Files written as .lzo by SeaTunnel's sinks are read by their ending.
    "spark.hadoop.io.compression.codecs": ",".join(
        (
            "org.apache.hadoop.io.compress.GzipCodec",
            "org.apache.hadoop.io.compress.BZip2Codec",
            "org.apache.hadoop.io.compress.DeflateCodec",
            "org.apache.hadoop.io.compress.SnappyCodec",
            "org.apache.hadoop.io.compress.Lz4Codec",
            "io.airlift.compress.lzo.LzopCodec",
        )
    ),
    # A sink's staged folder holds data files only.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}

LOCAL_CONF = {
    # From 32 files on, Spark would list them with a task for each, which takes seconds.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
    # Local disks without a process for each mode that is set, and without checksums that no one
    # reads: a quarter of a small slice.
    "spark.hadoop.fs.file.impl": "holdfast.LocalFiles",
    # No other process calls this Spark, and a name lookup may hang.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

# A Python worker that crashes (out of memory, a broken library) gets two more tries.
TASK_TRIES = 3

# The heap is a quarter of the machine: Python workers, Arrow and the page cache need the rest.
HEAP_SHARE = 4
HEAP_MB_MIN, HEAP_MB_MAX = 1024, 8192

_CLUSTER_SIZES = {
    "spark.executor.instances", "spark.executor.memory", "spark.executor.cores",
    "spark.executor.memoryOverhead", "spark.cores.max", "spark.submit.deployMode",
    "spark.dynamicAllocation.enabled",
}  # fmt: skip
_OTHER_SPARKS = ("spark.remote", "spark.api.mode", "spark.connect.")
# What a command line needs, so that it is no part of the session's settings.
_LAUNCH = {
    "spark.master", "spark.driver.memory", "spark.driver.extraJavaOptions",
    "spark.driver.defaultJavaOptions", "spark.driver.extraClassPath", "spark.local.dir",
}  # fmt: skip
_GRACEFUL = ("spark.eventLog.enabled", "spark.extraListeners", "spark.plugins")


@dataclass(frozen=True)
class SparkSettings:
    """How to start Spark: what goes on the JVM's command line, and what into the session."""

    spark: Mapping[str, str]
    heap: str
    java_options: tuple[str, ...] = ()
    class_path: tuple[str, ...] = ()
    local_folders: tuple[str, ...] = ()
    by_submit: bool = False  # Spark's own start-up has work to do: a cluster, or jars to fetch

    @property
    def master(self) -> str:
        """Where the work is done: `local[...]` or the address of a cluster."""
        return self.spark["spark.master"]

    @property
    def is_local(self) -> bool:
        """Whether all of Spark is one process on this machine."""
        return self.master.startswith("local[")

    @property
    def needs_goodbye(self) -> bool:
        """Whether somebody outside waits for Spark to end in order."""
        return not self.is_local or any(
            self.spark.get(key, "false") not in ("", "false") for key in _GRACEFUL
        )


def resolve(
    asked: Mapping[str, str], cores: int | None, environ: Mapping[str, str] = os.environ
) -> SparkSettings:
    """Return how to start Spark for a job that asks for these settings and this many cores."""
    _refuse_other_sparks(asked)
    master = _master(asked.get("spark.master", "local"), cores)
    local = master.startswith("local[")
    dropped = _LAUNCH | (_CLUSTER_SIZES | {"spark.jars"} if local else set())
    spark = SPARK_CONF | (LOCAL_CONF | _for_cores(master) if local else {})
    spark |= {key: value for key, value in asked.items() if key not in dropped}
    jars, fetched = _jars(asked.get("spark.jars", "")) if local else ((), False)
    by_submit = not local or fetched or "spark.jars.packages" in asked
    if fetched:
        spark["spark.jars"] = asked["spark.jars"]
    memory = asked.get("spark.driver.memory") or environ.get("HOLDFAST_DRIVER_MEMORY")
    spilled = asked.get("spark.local.dir") or environ.get("SPARK_LOCAL_DIRS") or ""
    return SparkSettings(
        spark=spark | {"spark.master": master},
        heap=_heap(memory) if memory else f"{_default_heap_mb(memory_bytes())}m",
        java_options=tuple(_java_options(asked)),
        class_path=(*jars, *_class_path(asked, environ)),
        local_folders=tuple(part.strip() for part in spilled.split(",") if part.strip()),
        by_submit=by_submit,
    )


def memory_bytes() -> int:
    """Return how much memory this process may use: the machine's, or its container's."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = Path("/sys/fs/cgroup/memory.max")
    said = limit.read_text().strip() if limit.exists() else "max"
    return min(machine, int(said)) if said.isdigit() else machine


def _default_heap_mb(memory: int) -> int:
    megabytes = memory >> 20
    at_least = min(HEAP_MB_MIN, max(512, megabytes // 2))
    return max(at_least, min(HEAP_MB_MAX, megabytes // HEAP_SHARE))


def _refuse_other_sparks(asked: Mapping[str, str]) -> None:
    for key in asked:
        if key.startswith(_OTHER_SPARKS):
            raise UserError(
                f"{key} cannot be set: Holdfast starts Spark itself and does not use Spark Connect."
                " Remove it; to use a cluster, set spark.master.",
                code="spark.other_kind",
            )


def _master(asked: str, cores: int | None) -> str:
    """Return the master to use, with task retries where Spark is local."""
    local = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*(\d+)\s*)?\])?", asked.strip())
    if local:
        return f"local[{cores or local[1] or '*'},{local[2] or TASK_TRIES}]"
    if re.match(r"(spark|k8s|local-cluster)[:\[]|yarn$", asked):
        return asked
    raise UserError(
        f"spark.master = '{asked}' is not a Spark master. Give local[*], local[4],"
        " spark://host:7077, yarn or k8s://..., or leave it out to use this machine.",
        code="spark.master",
    )


def _for_cores(master: str) -> dict[str, str]:
    """Return the number of shuffle partitions: Spark's 200 are for clusters, and it joins small
    ones but never splits large ones."""
    found = re.search(r"\d+", master.partition(",")[0])
    cores = int(found[0]) if found else os.cpu_count() or 1
    return {"spark.sql.shuffle.partitions": str(max(16, 4 * cores))}


def _heap(asked: str) -> str:
    """Return a JVM's word for an amount of memory in Spark's words; a bare number is megabytes."""
    found = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)b?\s*", asked.lower())
    if not found:
        raise UserError(
            f"'{asked}' is not an amount of memory for spark.driver.memory. Give 512m or 4g.",
            code="spark.memory",
        )
    return found[1] + (found[2] or "m")


def _java_options(asked: Mapping[str, str]) -> Iterator[str]:
    for key in ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"):
        try:
            yield from shlex.split(asked.get(key, ""))
        except ValueError as error:
            raise UserError(
                f"{key} = '{asked[key]}' cannot be read: {error}. Close every quote.",
                code="spark.java_options",
            ) from error


def _jars(asked: str) -> tuple[tuple[str, ...], bool]:
    """Return the jars to put on the class path, or that Spark has to fetch some of them."""
    names = [name.strip() for name in asked.split(",") if name.strip()]
    if any(urlsplit(name).scheme not in ("", "file", "local") for name in names):
        return (), True
    found: list[str] = []
    for name in names:
        path = Path(urlsplit(name).path)
        matching = sorted(path.parent.glob(path.name)) if path.parent.exists() else []
        if not matching:
            raise UserError(
                f"The jar {path} does not exist. Correct env.jars or spark.jars.", code="spark.jar"
            )
        found += [str(jar.absolute()) for jar in matching]
    return tuple(found), False


def _class_path(asked: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[str]:
    yield from filter(None, asked.get("spark.driver.extraClassPath", "").split(os.pathsep))
    # Where core-site.xml, hive-site.xml and other such files are, as for Spark's own scripts.
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"):
        if environ.get(name):
            yield environ[name]
