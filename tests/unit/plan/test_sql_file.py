"""SQL job files."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parse_texts import errors, job, parsed, places, warnings

from holdfast.connect.checks import CheckReport
from holdfast.plan.load import parse_job

SOURCE = "CREATE TABLE a WITH ('connector'='FakeSource', 'type'='source');"
SINK = "CREATE TABLE z WITH ('connector'='Console', 'type'='sink');"

JOB = """/* A licence; not a config. */
/* config
env {
  parallelism = ${p}
  job.mode = "BATCH"
}
*/
CREATE TABLE fake WITH ( -- a comment
  'connector' = 'FakeSource', 'type' = 'source',
  'row.num' = '5', 'note' = 'it''s; -- so',
  'schema' = '{
     fields { a = "int", b = string }
  }'
);
CREATE TABLE small AS SELECT a, /* not b */ 'x;' AS c FROM fake WHERE a < 5;
INSERT INTO out SELECT * FROM small;
CREATE TABLE out WITH ('connector'='Console','type'='SINK','plugin_input'='x')
"""


def test_tables_become_plugins_and_inserts_wire_them() -> None:
    assert parsed(JOB, "job.sql", variables={"p": "3"}) == {
        "env": {"parallelism": 3, "job": {"mode": "BATCH"}},
        "source": [
            {
                "plugin_name": "FakeSource",
                "row.num": "5",
                "note": "it's; -- so",
                "schema": {"fields": {"a": "int", "b": "string"}},
                "plugin_output": "fake",
            }
        ],
        "transform": [
            {
                "plugin_name": "Sql",
                "plugin_input": "fake",
                "plugin_output": "small",
                "query": "SELECT a, 'x;' AS c FROM fake WHERE a < 5",
            }
        ],
        "sink": [{"plugin_name": "Console", "plugin_input": "small"}],
    }


def test_places_are_those_of_the_file() -> None:
    found = places(job(JOB, "job.sql"))
    assert found["/env/parallelism"] == "4:3 4:17"
    assert found["/source/0"] == "8:14"
    assert found["/source/0/plugin_name"] == "9:3 9:17"
    assert found["/source/0/row.num"] == "10:3 10:15"
    assert found["/source/0/schema"] == "11:3 11:15"
    assert found["/source/0/schema/fields/b"] == "12:26 12:30"
    assert found["/transform/0/query"] == "15:23"
    assert found["/sink/0/plugin_input"] == "16:31"


def test_a_doubled_quote_does_not_shift_places() -> None:
    table = "CREATE TABLE b WITH ('connector'='A','type'='source','x'='[\"''\", 1]');"
    found = places(job(f"{SINK}\n{table}INSERT INTO z SELECT * FROM b", "job.sql"))
    assert found["/source/0/x/1"] == "2:66"


@pytest.mark.parametrize(
    "select",
    ["SELECT * FROM a", "select * from a", "SELECT * FROM db.`a`", "SELECT a", 'SELECT * FROM "a"'],
)
def test_a_whole_table_is_wired_directly(select: str) -> None:
    text = f"{SOURCE}{SINK}INSERT INTO z {select};"
    assert parsed(text, "job.sql") == {
        "source": [{"plugin_name": "FakeSource", "plugin_output": "a"}],
        "sink": [{"plugin_name": "Console", "plugin_input": "a"}],
    }


def test_every_other_insert_has_a_transform_and_a_sink_of_its_own() -> None:
    text = f"{SOURCE}{SINK}INSERT INTO z SELECT n FROM a;INSERT INTO z SELECT upper(n) FROM a"
    found = parsed(text, "job.sql")
    assert found["transform"] == [
        {
            "plugin_name": "Sql",
            "plugin_input": "a",
            "plugin_output": f"a__temp{i}",
            "query": f"SELECT {column} FROM a",
        }
        for i, column in ((1, "n"), (2, "upper(n)"))
    ]
    assert found["sink"] == [
        {"plugin_name": "Console", "plugin_input": f"a__temp{i}"} for i in (1, 2)
    ]


def test_a_sink_that_nothing_is_written_to_is_left_out() -> None:
    other = SINK.replace("TABLE z", "TABLE y")
    found = parsed(f"{SOURCE}{SINK}{other}INSERT INTO z SELECT a", "job.sql")
    assert found["sink"] == [{"plugin_name": "Console", "plugin_input": "a"}]


def test_escapes_in_values_are_made_real_where_they_are_escapes() -> None:
    text = SOURCE.replace("'source'", r"'source', 'd' = '\t', 'r' = '\d+'")
    (source,) = parsed(f"{text}{SINK}INSERT INTO z SELECT a", "job.sql")["source"]  # type: ignore[misc]
    assert source == {"plugin_name": "FakeSource", "d": "\t", "r": r"\d+", "plugin_output": "a"}


def test_variables_may_be_part_of_names_and_queries() -> None:
    text = SOURCE.replace("TABLE a", "TABLE a_${d}") + SINK
    text += "INSERT INTO z SELECT x FROM a_${d} WHERE y = '${d}'"
    found = parsed(text, "job.sql", variables={"d": "9"})
    assert found["source"] == [{"plugin_name": "FakeSource", "plugin_output": "a_9"}]
    assert found["transform"] == [
        {
            "plugin_name": "Sql",
            "plugin_input": "a_9",
            "plugin_output": "a_9__temp1",
            "query": "SELECT x FROM a_9 WHERE y = '9'",
        }
    ]


def test_columns_are_warned_of() -> None:
    text = SOURCE.replace("a WITH", "IF NOT EXISTS a (id int, p decimal(3, 1)) WITH")
    assert warnings(f"{text}{SINK}INSERT INTO z SELECT a", "job.sql") == [
        "1:30: The columns of a are not used. Remove them."
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-- nothing", "1:1: The file has no source. Write CREATE TABLE ... WITH"
         " ('connector' = ..., 'type' = 'source')."),
        (SOURCE, "1:1: Nothing is written. Write INSERT INTO sink SELECT * FROM source."),
        ("DROP TABLE x", "1:1: Found 'DROP'. Only CREATE TABLE and INSERT INTO may stand here."),
        ("CREATE TABLE x", "1:14: Found the end of the statement where WITH (...) or AS SELECT"
         " should stand."),
        ("CREATE TABLE 5", "1:14: Found '5' where a table's name should be."),
        (f"{SOURCE}\n{SOURCE}", "2:14: The table a occurs twice. Rename one."),
        ("CREATE TABLE x WITH ('type'='source')",
         "1:14: x needs a 'connector' = '...' that names its kind."),
        ("CREATE TABLE x WITH ('connector'='A')",
         "1:14: x needs 'type' = 'source' or 'type' = 'sink'."),
        ("CREATE TABLE x WITH ('connector'='A', 'type'='table')",
         "1:46: x needs 'type' = 'source' or 'type' = 'sink'."),
        ("CREATE TABLE x WITH (connector='A')",
         "1:22: Found 'connector' where an option's name in 'single quotes' should stand."),
        ("CREATE TABLE x WITH ('a' 'b')", "1:26: Found a quoted text where = should stand."),
        ("CREATE TABLE x WITH ('a'='b' 'c'='d')",
         "1:30: Found a quoted text where ) should stand."),
        ("CREATE TABLE x WITH ('a'='b') y", "1:31: Found 'y'. Put a ; before it, or remove it."),
        ("CREATE TABLE x WITH ('a'='{ b = * }')",
         "1:33: Found '*' in a value. Put text with special characters in double quotes."),
        ("CREATE TABLE x ( WITH ('a'='b')",
         "1:16: Found '(' where WITH (...) or AS SELECT should stand."),
        (f"{SINK}INSERT INTO z SELECT * FROM q",
         "1:88: There is no table q to read. Create it WITH (...)."),
        (f"{SOURCE}\nINSERT INTO q SELECT a", "2:13: There is no sink q. Create it WITH (...)."),
        (f"{SOURCE}{SINK}\nINSERT INTO a SELECT a", "2:13: There is no sink a. Known: z."),
        (f"{SOURCE}{SINK}\nINSERT INTO z (x) SELECT * FROM a",
         "2:15: INSERT INTO takes no columns. Name them in the SELECT."),
        (f"{SOURCE}{SINK}\nINSERT INTO z SELECT x, y",
         "2:23: Found ',' where FROM should stand."),
        (f"{SOURCE}{SINK}\nINSERT INTO z SELECT x FROM (SELECT 1)",
         "2:29: Found '(' where a table's name should be."),
        (f"{SOURCE}{SINK}\nINSERT INTO z VALUES (1)", "2:15: Found 'VALUES' where SELECT should"
         " stand."),
        ("/* config\nenv { a = = }\n*/", "2:11: Found '=' in a value. Put a comma or a new line"
         " before the next key, or the value in double quotes."),
        (f"/* config sink {{}} */{SOURCE}{SINK}INSERT INTO z SELECT a",
         "1:11: sink comes from CREATE TABLE here. Remove the block."),
        ("/* open", "1:1: This /* is never closed. Close it."),
        ("CREATE 'open", "1:8: This ' is never closed. Close it."),
    ],
)  # fmt: skip
def test_mistakes(text: str, message: str) -> None:
    assert errors(text, "job.sql") == [message]


MARKS = st.lists(
    st.sampled_from(
        [SOURCE, SINK, "CREATE TABLE ", "INSERT INTO ", "SELECT ", " FROM ", "WITH ", " AS ", "a",
         "z", "'", "''", "(", ")", "=", ",", ";", "/*", "*/", "config", "{", "}", "[", "]", "--",
         "\n", " ", "*", "`", '"', ".", "\\"]
    )
).map("".join)  # fmt: skip


@given(st.one_of(st.text(), MARKS))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    report = CheckReport()
    tree = parse_job(text, "job.sql", {}, None, report)
    assert (tree is None) == bool(report.mistakes)
