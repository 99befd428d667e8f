"""The env block."""

from typing import Any

from plan_trees import check, checked, errors, plugin, tree

from holdfast.connect.options import describe
from holdfast.model.job import Mode
from holdfast.model.tree import Block
from holdfast.plan.env import EnvOptions


def job(**env: Any) -> Block:
    return tree({"env": env, "source": [plugin("Rows")], "sink": [plugin("Print")]})


def test_an_empty_env_gives_the_defaults_of_seatunnel() -> None:
    made = checked(job())
    assert made.name == "SeaTunnel_Job"
    assert made.mode is Mode.BATCH
    assert made.parallelism == 1
    assert made.checkpoint_interval_ms is None
    assert made.checkpoint_timeout_ms is None
    assert (made.retry_times, made.retry_interval_s) == (3, 3)
    assert (made.rows_per_second, made.bytes_per_second) == (None, None)
    assert made.tag_filter == ()
    assert made.spark == ()


def test_no_env_at_all_is_the_same() -> None:
    bare = tree({"source": [plugin("Rows")], "sink": [plugin("Print")]})
    assert checked(bare).name == "SeaTunnel_Job"


def test_options_are_read_nested_or_dotted() -> None:
    made = checked(
        job(
            **{
                "job": {"name": "orders", "mode": "streaming", "retry": {"times": 1}},
                "job.retry.interval.seconds": "7",
                "checkpoint": {"interval": 5000, "timeout": 60000},
                "read_limit.rows_per_second": 100,
                "read_limit": {"bytes_per_second": 2000},
                "tag_filter": {"group": "blue", "zone": 2},
                "parallelism": 4,
            }
        )
    )
    assert (made.name, made.mode) == ("orders", Mode.STREAMING)
    assert (made.retry_times, made.retry_interval_s) == (1, 7)
    assert (made.checkpoint_interval_ms, made.checkpoint_timeout_ms) == (5000, 60000)
    assert (made.rows_per_second, made.bytes_per_second) == (100, 2000)
    assert made.tag_filter == (("group", "blue"), ("zone", "2"))
    assert made.parallelism == 4


def test_old_names_still_work() -> None:
    made = checked(
        job(
            jobMode="STREAMING",
            job_name="old",
            execution={"parallelism": 3, "checkpoint": {"interval": 1000}},
        )
    )
    assert (made.name, made.mode) == ("old", Mode.STREAMING)
    assert (made.parallelism, made.checkpoint_interval_ms) == (3, 1000)


def test_a_streaming_job_takes_a_checkpoint_every_ten_seconds() -> None:
    assert checked(job(**{"job.mode": "STREAMING"})).checkpoint_interval_ms == 10_000
    doc = {i.key: i.doc for i in describe(EnvOptions)}["checkpoint.interval"]
    assert "every 10 seconds" in doc


def test_the_argument_wins_over_the_name_in_the_file() -> None:
    assert checked(job(**{"job.name": "file"}), name="argument").name == "argument"


def test_spark_settings_are_passed_on_in_order() -> None:
    made = checked(
        job(
            **{
                "spark": {"executor": {"memory": "1g", "cores": 1}},
                "spark.jars.packages": ["a:b:1", "c:d:2"],
                "jars": "x.jar; y.jar",
            }
        )
    )
    assert made.spark == (
        ("spark.executor.memory", "1g"),
        ("spark.executor.cores", "1"),
        ("spark.jars.packages", "a:b:1,c:d:2"),
        ("spark.jars", "x.jar,y.jar"),
    )


def test_settings_of_other_engines_are_accepted_with_one_warning() -> None:
    made, report = check(
        job(
            flink={"jobstore": {"cache-size": 5}, "x": 1},
            **{"execution.checkpoint.data-uri": "hdfs://x"},
        )
    )
    assert made
    assert [w.message for w in report.warnings] == [
        "env: flink.jobstore.cache-size, flink.x, execution.checkpoint.data-uri have no effect:"
        " Holdfast runs jobs on Spark. Settings that start with 'spark.' are passed on."
    ]


def test_options_that_are_not_used_say_so() -> None:
    made, report = check(job(error_handler={"mode": "LOG"}))
    assert made
    assert [w.message for w in report.warnings] == [
        "env: error_handler has no effect. What to do with rows that fail. Accepted, not used:"
        " a row that fails, fails the job."
    ]


def test_every_mistake_is_reported() -> None:
    found = errors(
        job(
            **{
                "job.mode": "LIVE",
                "parallelism": 0,
                "checkpoint.interval": 9,
                "checkpoint.intervall": 1,
                "job.retry.times": "many",
            }
        )
    )
    assert found == [
        "2: env: job.mode must be BATCH or STREAMING, not 'LIVE'.",
        "3: env: parallelism must be at least 1, not 0.",
        "4: env: checkpoint.interval must be at least 10, not 9.",
        "5: env: unknown option 'checkpoint.intervall'. Did you mean 'checkpoint.interval'?",
        "6: env: job.retry.times must be a whole number, not 'many'.",
    ]


def test_encrypted_credentials_are_refused() -> None:
    assert errors(job(**{"shade.identifier": "base64"})) == [
        "2: env: shade.identifier = 'base64' is not supported: encrypted credentials cannot be"
        " read. Remove it and give credentials as variables, such as password = ${DB_PASSWORD}."
    ]


def test_every_option_is_documented() -> None:
    assert [i.key for i in describe(EnvOptions) if not i.doc.endswith(".")] == []
