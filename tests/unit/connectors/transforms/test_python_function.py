"""The Python transform."""

import pytest

from holdfast.connect.rows import Rows
from holdfast.connectors.transforms.python import Python
from holdfast.errors import UserError

CODE = """
from pyspark.sql import functions as F

def double(df):
    return df.withColumn("n", F.col("n") * 2)

def add(df, options):
    return df.withColumn("n", F.col("n") + options["by"])

def broken(df):
    return df.nothing_like_it

def text(df):
    return "rows"

def forget(df):
    return df.select("n")

number = 1
"""


@pytest.fixture
def code(tmp_path):
    file = tmp_path / "my_functions.py"
    file.write_text(CODE)
    return str(file)


@pytest.fixture
def run(build, frame, code):
    def made(function, ddl="n int", row=(3,), **more):
        given = {"file": code, "function": function, **more}
        rows = Rows.of("test.t", frame(ddl, row))
        return build(Python, allow_python=True, **given).apply(rows)

    return made


@pytest.mark.spark
def test_a_function_changes_the_frame(run):
    assert [tuple(r) for r in run("double").frame.collect()] == [(6,)]
    assert [tuple(r) for r in run("add", options={"by": 4}).frame.collect()] == [(7,)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("broken", r"function failed on table test\.t: .*nothing_like_it.*functions\.py, line 11"),
        ("text", "function text returned str, not a DataFrame"),
        ("number", "has no function number"),
        ("none", "has no function none"),
    ],
)
def test_what_goes_wrong_in_it_is_the_users_to_mend(run, function, message):
    with pytest.raises(UserError, match=message):
        run(function)


@pytest.mark.spark
def test_a_changelog_must_stay_one(run):
    with pytest.raises(UserError, match=r"function forget dropped __kind from table test\.t"):
        run("forget", ddl="n int, __kind string", row=(1, "DELETE"))


@pytest.mark.spark
def test_files_and_modules_that_are_not_there_are_named(run):
    with pytest.raises(UserError, match=r"Python file nowhere\.py does not exist"):
        run("f", file="nowhere.py")
    with pytest.raises(UserError, match="cannot be loaded: ModuleNotFoundError"):
        run("f", file=None, module="no_such_module_at_all")


def test_python_is_off_unless_allowed(build, code):
    with pytest.raises(UserError, match="Run with --allow-python"):
        build(Python, file=code, function="double")
    assert Python.needs_python


def test_file_or_module_is_given(build):
    wanted = ["Python: give one of 'file' and 'module', not both."]
    assert build.mistakes(Python, function="f") == wanted
    assert build.mistakes(Python, function="f", file="a.py", module="a") == wanted
