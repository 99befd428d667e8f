"""The start-up cache: Spark's classes, loaded, linked and profiled ahead of time.

Java 25 writes it when a JVM that recorded itself ends (`-XX:AOTCacheOutput`); Java 17 and 21 write
an archive of loaded classes, which helps less.  A cache belongs to one Java, one Spark and one set
of flags, and its name says which.  It counts once its size is noted next to it, so one that was cut
short is never used; the JVM checks the rest itself, and starts without a cache that does not fit.

HOLDFAST_AOT=off does without; HOLDFAST_AOT=use uses a cache but never makes one behind your back.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.errors import Unavailable, UserError
from holdfast.files import state_dir
from holdfast.spark import java
from holdfast.spark.java import Java
from holdfast.spark.jvm import COLLECTOR, OWN_JAR, module_flags, spark_jars

AOT_MAJOR_MIN = 25
KEPT_MAX = 3
FREE_BYTES_MIN = 2 << 30
RETRY_S = 3600

NO_PROFILES = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTRecordTraining", "-XX:-AOTReplayTraining")
"""A cache without the profiles of the little jobs that trained it: see decision 0003."""

_running: list[subprocess.Popen[bytes]] = []
"""Trainers in the background.  Kept, because Python complains about children that it forgets."""


def cache_path(found: Java) -> Path:
    """Return where the cache for this Java and this Spark is, whether it exists or not."""
    flags = [*module_flags(found.major), COLLECTOR, *NO_PROFILES]
    trained = Path(__file__).with_name("training.py").read_bytes()
    ours = hashlib.sha256(OWN_JAR.read_bytes() + trained).hexdigest()
    key = "\n".join([str(found.home), found.version, *spark_jars(), ours, *flags])
    kind = "aot" if found.major >= AOT_MAJOR_MIN else "jsa"
    digest = hashlib.sha256(key.encode()).hexdigest()[:12]
    return state_dir.cache() / f"spark-java-{found.version}-{digest}.{kind}"


def is_whole(cache: Path) -> bool:
    """Say whether a cache is there, and as long as when it was written."""
    noted = _size_note(cache)
    return cache.exists() and noted.exists() and noted.read_text() == str(cache.stat().st_size)


def use(found: Java) -> list[str]:
    """Return the JVM flags that use the cache, or none."""
    cache = cache_path(found)
    if _mode() == "off" or not is_whole(cache):
        return []
    if found.major >= AOT_MAJOR_MIN:
        return [f"-XX:AOTCache={cache}", *NO_PROFILES]
    return [f"-XX:SharedArchiveFile={cache}"]


def publish(fresh: Path, cache: Path) -> None:
    """Put a finished cache into place, and drop the oldest of too many."""
    _size_note(cache).unlink(missing_ok=True)
    fresh.rename(cache)
    _size_note(cache).write_text(str(cache.stat().st_size))
    failure_note(cache).unlink(missing_ok=True)
    made = sorted(cache.parent.glob("spark-java-*.[aj][os][ta]"), key=lambda p: p.stat().st_mtime)
    for old in made[:-KEPT_MAX]:
        _size_note(old).unlink(missing_ok=True)
        old.unlink()


def failure_note(cache: Path) -> Path:
    """Return the file that says when making this cache failed last."""
    return cache.with_suffix(".failed")


def train_in_background_if_missing() -> None:
    """Make the cache for the next run, at the lowest priority, if there is none.

    The trainer outlives us.  Only one trains at a time, and after a failure none for an hour.
    """
    if _mode() != "auto":
        return
    cache = cache_path(java.find())
    failed = failure_note(cache)
    lately = failed.exists() and time.time() - failed.stat().st_mtime < RETRY_S
    if is_whole(cache) or lately or shutil.disk_usage(cache.parent).free < FREE_BYTES_MIN:
        return
    # A job that ended well stays well on a machine that cannot start one more process.
    with contextlib.suppress(OSError):
        _running.append(_trainer(background=True))


def warm_up(say: Callable[[str], None]) -> None:
    """Make the cache now, telling `say` how it goes."""
    if _mode() == "off":
        raise UserError("HOLDFAST_AOT=off: there is no cache to prepare. Unset it.", code="aot.off")
    found = java.find()
    if is_whole(cache_path(found)):
        say(f"Spark on {found} is warmed up already.")
        return
    say(f"Warming up Spark on {found}; this takes about a minute, once...")
    began = time.monotonic()
    if _trainer(background=False).wait() or not is_whole(cache_path(found)):
        raise Unavailable(
            f"Warming up failed. Its log is {log_file()}. Jobs run without it, but start slower.",
            code="aot.failed",
        )
    size = cache_path(found).stat().st_size >> 20
    say(f"Done in {time.monotonic() - began:.0f} seconds; the cache takes {size} MB.")


def log_file() -> Path:
    """Return where a trainer writes."""
    return state_dir.logs() / "warmup.log"


def _trainer(background: bool) -> subprocess.Popen[bytes]:
    words = ["--background"] if background else []
    with log_file().open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast.spark.training", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=state_dir.cache(),
            env=_environment(),
            start_new_session=background,
        )


def _environment() -> dict[str, str]:
    ours = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([ours, os.getenv("PYTHONPATH", "")])}


def _mode() -> str:
    mode = os.environ.get("HOLDFAST_AOT", "auto").lower()
    if mode not in ("auto", "use", "off"):
        raise UserError(f"HOLDFAST_AOT = '{mode}' is not one of auto, use, off.", code="aot.mode")
    return mode


def _size_note(cache: Path) -> Path:
    return cache.with_name(f"{cache.name}.size")
