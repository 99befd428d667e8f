"""When the start-up cache is used, and when it is made."""

import os
import time
from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.worker import aot, driver, java, training
from holdfast.worker.java import Java

NEW = Java(Path("/jdk"), "25.0.2")
OLD = Java(Path("/jdk"), "17.0.15")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path))
    monkeypatch.delenv("HOLDFAST_AOT", raising=False)


def made(found: Java, content: bytes = b"classes") -> Path:
    cache = aot.cache_path(found)
    fresh = cache.with_suffix(".fresh")
    fresh.write_bytes(content)
    aot.publish(fresh, cache)
    return cache


def test_a_cache_belongs_to_one_java() -> None:
    names = {aot.cache_path(found) for found in (NEW, OLD, Java(Path("/other"), "25.0.2"))}
    assert len(names) == 3


def test_the_flags_are_the_versions_own() -> None:
    assert aot.use(NEW) == []
    assert aot.record(NEW, Path("/c")) == ["-XX:AOTCacheOutput=/c", *aot.NO_PROFILES]
    assert aot.record(OLD, Path("/c")) == ["-XX:ArchiveClassesAtExit=/c"]
    new, old = made(NEW), made(OLD)
    assert aot.use(NEW) == [f"-XX:AOTCache={new}", *aot.NO_PROFILES]
    assert aot.use(OLD) == [f"-XX:SharedArchiveFile={old}"]


def test_a_cache_that_was_cut_short_is_not_used() -> None:
    cache = made(NEW)
    os.truncate(cache, 3)
    assert not aot.is_whole(cache) and aot.use(NEW) == []


def test_a_cache_in_the_making_is_not_used() -> None:
    aot.cache_path(NEW).write_bytes(b"half")
    assert aot.use(NEW) == []


def test_off_means_without(monkeypatch: pytest.MonkeyPatch) -> None:
    made(NEW)
    monkeypatch.setenv("HOLDFAST_AOT", "off")
    assert aot.use(NEW) == []
    with pytest.raises(UserError, match="HOLDFAST_AOT=off"):
        aot.warm_up(print)


def test_a_wrong_mode_lists_the_good_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_AOT", "yes")
    with pytest.raises(UserError, match="not one of auto, use, off"):
        aot.use(NEW)


def test_old_caches_make_room() -> None:
    caches = []
    for number in range(aot.KEPT_MAX + 1):
        caches.append(made(Java(Path("/jdk"), f"25.0.{number}")))
        os.utime(caches[-1], (number, number))
    assert [cache.exists() for cache in caches] == [False, *[True] * aot.KEPT_MAX]


def test_nothing_is_made_that_is_there() -> None:
    made(java.find())
    said: list[str] = []
    aot.warm_up(said.append)
    aot.train_in_background_if_missing()
    assert said == [f"Spark on {java.find()} is warmed up already."]
    assert training.main([]) == 0 and not aot.log_file().exists()


@pytest.mark.parametrize("mode", ["use", "off"])
def test_nothing_is_made_unasked(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_AOT", mode)
    aot.train_in_background_if_missing()
    assert not aot.log_file().exists()


def test_a_failure_is_not_repeated_at_once() -> None:
    aot.failure_note(aot.cache_path(java.find())).touch()
    aot.train_in_background_if_missing()
    assert not aot.log_file().exists()


@pytest.mark.spark
@pytest.mark.parametrize("content", [b"", b"\0" * 9000], ids=["empty", "nonsense"])
def test_spark_starts_with_a_cache_that_is_broken(tmp_path: Path, content: bytes) -> None:
    made(java.find(), content)
    assert aot.use(java.find())
    began = time.monotonic()
    starting = driver.begin({}, 1, tmp_path / "spark.log")
    try:
        port, secret = starting.jvm.wait_ready()
        assert port > 0 and secret
    finally:
        driver.stop(starting)
    assert time.monotonic() - began < 60
