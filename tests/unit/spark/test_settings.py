"""What a job's settings make of ours."""

from pathlib import Path

import pytest

from holdfast.errors import UserError
from holdfast.spark.settings import SPARK_CONF, resolve

SEATUNNEL = {
    "spark.app.name": "SeaTunnel",
    "spark.executor.instances": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
    "spark.master": "local",
}


def test_a_seatunnel_file_uses_the_whole_machine() -> None:
    found = resolve(SEATUNNEL, None, {})
    assert found.master == "local[*,3]"
    assert found.spark["spark.app.name"] == "SeaTunnel"
    assert not [key for key in found.spark if key.startswith("spark.executor.m")]
    assert not found.by_submit and not found.needs_goodbye


@pytest.mark.parametrize(
    ("asked", "cores", "master"),
    [
        ("local[2]", None, "local[2,3]"),
        ("local[*]", None, "local[*,3]"),
        ("local[4, 1]", None, "local[4,1]"),
        ("local[4]", 2, "local[2,3]"),
        ("local", 1, "local[1,3]"),
    ],
)
def test_local_masters(asked: str, cores: int | None, master: str) -> None:
    assert resolve({"spark.master": asked}, cores, {}).master == master


def test_a_cluster_keeps_its_settings_and_goes_through_sparks_own_start() -> None:
    found = resolve({**SEATUNNEL, "spark.master": "spark://host:7077"}, None, {})
    assert found.master == "spark://host:7077"
    assert found.by_submit and found.needs_goodbye
    assert found.spark["spark.executor.memory"] == "1g"
    assert "spark.driver.host" not in found.spark


def test_a_wrong_master_is_refused() -> None:
    with pytest.raises(UserError, match=r"'mesos://x' is not a Spark master\. Give local\[\*\]"):
        resolve({"spark.master": "mesos://x"}, None, {})


def test_spark_connect_is_refused() -> None:
    with pytest.raises(UserError, match=r"spark\.remote cannot be set"):
        resolve({"spark.remote": "sc://host"}, None, {})


def test_a_users_setting_wins_over_ours() -> None:
    key = "spark.sql.session.timeZone"
    assert resolve({key: "Europe/Vienna"}, None, {}).spark[key] == "Europe/Vienna"
    assert resolve({}, None, {}).spark[key] == SPARK_CONF[key]


@pytest.mark.parametrize(
    ("asked", "heap"), [("1g", "1g"), ("512M", "512m"), ("2gb", "2g"), ("2048", "2048m")]
)
def test_memory_in_sparks_words(asked: str, heap: str) -> None:
    assert resolve({"spark.driver.memory": asked}, None, {}).heap == heap
    assert resolve({}, None, {"HOLDFAST_DRIVER_MEMORY": asked}).heap == heap


def test_memory_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="'lots' is not an amount of memory"):
        resolve({"spark.driver.memory": "lots"}, None, {})


def test_what_the_jvm_needs_is_not_left_in_the_session() -> None:
    asked = {
        "spark.driver.extraJavaOptions": "-Dfile.encoding=UTF-8 '-Dname=a b'",
        "spark.driver.extraClassPath": "/a:/b",
        "spark.local.dir": "/fast, /large",
    }
    found = resolve(asked, None, {"HADOOP_CONF_DIR": "/etc/hadoop"})
    assert found.java_options == ("-Dfile.encoding=UTF-8", "-Dname=a b")
    assert found.class_path == ("/a", "/b", "/etc/hadoop")
    assert found.local_folders == ("/fast", "/large")
    assert not asked.keys() & found.spark.keys()


def test_local_jars_go_on_the_class_path(tmp_path: Path) -> None:
    for name in ("a.jar", "b.jar"):
        (tmp_path / name).touch()
    found = resolve({"spark.jars": f"file://{tmp_path}/a.jar,{tmp_path}/b*.jar"}, None, {})
    assert found.class_path == (f"{tmp_path}/a.jar", f"{tmp_path}/b.jar")
    assert "spark.jars" not in found.spark and not found.by_submit


def test_a_jar_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"The jar .*none\.jar does not exist"):
        resolve({"spark.jars": str(tmp_path / "none.jar")}, None, {})


def test_jars_to_fetch_are_for_spark() -> None:
    assert resolve({"spark.jars": "hdfs://host/a.jar"}, None, {}).by_submit
    assert resolve({"spark.jars.packages": "a:b:1"}, None, {}).by_submit


def test_event_logs_are_ended_in_order() -> None:
    assert resolve({"spark.eventLog.enabled": "true"}, None, {}).needs_goodbye
