"""When the start-up cache is used, and when it is made."""

import os
import time
from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.spark import java, session, startup_cache, training
from holdfast.spark.java import Java

NEW = Java(Path("/jdk"), "25.0.2")
OLD = Java(Path("/jdk"), "17.0.15")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.delenv("HOLDFAST_AOT", raising=False)


def made(found: Java, content: bytes = b"classes") -> Path:
    cache = startup_cache.cache_path(found)
    fresh = cache.with_suffix(".fresh")
    fresh.write_bytes(content)
    startup_cache.publish(fresh, cache)
    return cache


def test_a_cache_belongs_to_one_java() -> None:
    names = {
        startup_cache.cache_path(found) for found in (NEW, OLD, Java(Path("/other"), "25.0.2"))
    }
    assert len(names) == 3


def test_the_flags_are_the_versions_own() -> None:
    assert startup_cache.use(NEW) == []
    assert session._recording_flags(NEW, Path("/c")) == [
        "-XX:AOTCacheOutput=/c",
        *startup_cache.NO_PROFILES,
    ]
    assert session._recording_flags(OLD, Path("/c")) == ["-XX:ArchiveClassesAtExit=/c"]
    new, old = made(NEW), made(OLD)
    assert startup_cache.use(NEW) == [f"-XX:AOTCache={new}", *startup_cache.NO_PROFILES]
    assert startup_cache.use(OLD) == [f"-XX:SharedArchiveFile={old}"]


def test_a_cache_that_was_cut_short_is_not_used() -> None:
    cache = made(NEW)
    os.truncate(cache, 3)
    assert not startup_cache.is_whole(cache) and startup_cache.use(NEW) == []


def test_a_cache_in_the_making_is_not_used() -> None:
    startup_cache.cache_path(NEW).write_bytes(b"half")
    assert startup_cache.use(NEW) == []


def test_off_means_without(monkeypatch: pytest.MonkeyPatch) -> None:
    made(NEW)
    monkeypatch.setenv("HOLDFAST_AOT", "off")
    assert startup_cache.use(NEW) == []
    with pytest.raises(UserError, match="HOLDFAST_AOT=off"):
        startup_cache.warm_up(print)


def test_a_wrong_mode_lists_the_good_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_AOT", "yes")
    with pytest.raises(UserError, match="not one of auto, use, off"):
        startup_cache.use(NEW)


def test_old_caches_make_room() -> None:
    caches = []
    for number in range(startup_cache.KEPT_MAX + 1):
        caches.append(made(Java(Path("/jdk"), f"25.0.{number}")))
        os.utime(caches[-1], (number, number))
    assert [cache.exists() for cache in caches] == [False, *[True] * startup_cache.KEPT_MAX]


def test_nothing_is_made_that_is_there() -> None:
    made(java.find())
    said: list[str] = []
    startup_cache.warm_up(said.append)
    startup_cache.train_in_background_if_missing()
    assert said == [f"Spark on {java.find()} is warmed up already."]
    assert training.main([]) == 0 and not startup_cache.log_file().exists()


@pytest.mark.parametrize("mode", ["use", "off"])
def test_nothing_is_made_unasked(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_AOT", mode)
    startup_cache.train_in_background_if_missing()
    assert not startup_cache.log_file().exists()


def test_a_failure_is_not_repeated_at_once() -> None:
    startup_cache.failure_note(startup_cache.cache_path(java.find())).touch()
    startup_cache.train_in_background_if_missing()
    assert not startup_cache.log_file().exists()


@pytest.mark.spark
@pytest.mark.parametrize("content", [b"", b"\0" * 9000], ids=["empty", "nonsense"])
def test_spark_starts_with_a_cache_that_is_broken(tmp_path: Path, content: bytes) -> None:
    made(java.find(), content)
    assert startup_cache.use(java.find())
    began = time.monotonic()
    starting = session.begin({}, 1, tmp_path / "spark.log")
    try:
        port, secret = starting.jvm.wait_ready()
        assert port > 0 and secret
    finally:
        session.stop(starting)
    assert time.monotonic() - began < 60
