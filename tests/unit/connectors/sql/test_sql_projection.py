"""Queries over one table, row by row: what SeaTunnel's own engine runs."""

from typing import Any

import pytest

from holdfast.connect.rows import Rows
from holdfast.errors import UserError

PEOPLE = """
    SELECT * FROM VALUES (1, 'Joy Ding', 20, NULL), (2, 'May Ding', 22, 'may@x.org'),
      (3, 'Kin Dom', 21, 'kin@x.org'), (4, 'LeBron Ding', 38, NULL), (5, NULL, 34, NULL)
    AS people(id, name, age, email)
"""

NESTED = """
    SELECT 1 AS id, 'top' AS name, named_struct(
      'text', 'in a row', 'name', 'inner',
      'deep', named_struct('number', 7, 'tags', map('colour', 'red'))) AS c_row
"""

TAGGED = """
    SELECT * FROM VALUES ('a;b', 'x,y', array('1', '1')), ('a', 'x,y', array('1')),
      ('a;b', 'x', NULL) AS tagged(pk_id, name, age)
"""


def _rows(made: Rows) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in made.frame.collect()]


@pytest.mark.spark
def test_conditions_keep_the_rows_that_seatunnel_keeps(run: Any) -> None:
    made = run(
        """select id, name from dual
           where (id = 1 or id in (2, 3, 4, 5)) and name <> 'Kin Dom' and email is null
             and (age >= 20 or age < 22) and (name like '%Din_' or name is null)
             and id not in (7, 8) and age <= 500""",
        PEOPLE,
    )
    # `<>` holds for NULL, so the row without a name stays.
    assert _rows(made) == [(1, "Joy Ding"), (4, "LeBron Ding"), (5, None)]


@pytest.mark.spark
def test_any_name_in_from_means_the_input_and_aliases_need_no_as(run: Any) -> None:
    made = run('select p.id number, p.`name` `apply`, "age", id + 1 from whatever p', PEOPLE)
    assert made.table.names == ("number", "apply", "age", "id + 1")
    assert _rows(made)[0] == (1, "Joy Ding", 20, 2)


@pytest.mark.spark
def test_the_result_keeps_path_key_and_row_kinds(run: Any) -> None:
    changes = f"SELECT *, 'DELETE' AS __kind, id AS __seq FROM ({PEOPLE}) WHERE id < 3"
    made = run("select *, upper(name) as loud from dual where id = 2", changes, key="id")
    assert str(made.table.path) == "db.people"
    assert made.table.names == ("id", "name", "age", "email", "loud")
    assert made.table.primary_key is not None
    assert made.table.changelog
    assert _rows(made) == [(2, "May Ding", 22, "may@x.org", "MAY DING", "DELETE", 2)]
    assert run("select name from dual", PEOPLE, key="id").table.primary_key is None


@pytest.mark.spark
def test_dots_go_into_rows_and_maps(run: Any) -> None:
    made = run(
        """select c_row.text, c_row.deep.number n, c_row.deep.tags tags,
             c_row.deep.tags.colour colour, c_row.deep.tags.size missing,
             c_row.deep.tags['colour'] bracket, people.c_row.name inner_name, people.name
           from people""",
        NESTED,
    )
    assert made.table.names == (
        "text", "n", "tags", "colour", "missing", "bracket", "inner_name", "name",
    )  # fmt: skip
    assert [str(c.type) for c in made.table.columns] == [
        "string", "int", "map<string, string>", "string", "string", "string", "string", "string",
    ]  # fmt: skip
    tags = {"colour": "red"}
    assert _rows(made) == [("in a row", 7, tags, "red", None, "red", "inner", "top")]


@pytest.mark.spark
def test_lateral_views_replace_columns_in_place_or_add_them_at_the_end(run: Any) -> None:
    made = run(
        """SELECT * FROM dual
           LATERAL VIEW OUTER EXPLODE(SPLIT(name, ',')) AS name
           LATERAL VIEW OUTER EXPLODE(SPLIT(pk_id, ';')) AS pk_id
           LATERAL VIEW OUTER EXPLODE(age) AS age
           LATERAL VIEW EXPLODE(ARRAY(1, 1)) AS num""",
        TAGGED,
        key="pk_id",
    )
    assert [(c.name, str(c.type)) for c in made.table.columns] == [
        ("pk_id", "string"), ("name", "string"), ("age", "string"), ("num", "int"),
    ]  # fmt: skip
    rows = _rows(made)
    assert len(rows) == 2 * (2 * 2 * 2 + 2 + 2)
    assert set(rows) == {
        (a, n, "1", 1) for a in ("a", "b") for n in ("x", "y")
    } | {("a", "x", None, 1), ("b", "x", None, 1)}  # fmt: skip


@pytest.mark.spark
def test_a_lateral_view_without_outer_drops_rows_without_values(run: Any) -> None:
    made = run("SELECT pk_id FROM t LATERAL VIEW EXPLODE(age) AS one", TAGGED)
    assert made.table.names == ("pk_id", "one")
    assert _rows(made) == [("a;b", "1"), ("a;b", "1"), ("a", "1")]
    spark_style = run("SELECT one, pk_id FROM t LATERAL VIEW EXPLODE(age) v AS one", TAGGED)
    assert spark_style.table.names == ("one", "pk_id")
    assert _rows(spark_style)[0] == ("1", "a;b")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select ID from dual", "no column 'ID'. Did you mean 'id'\\? Columns: id, name, c_row."),
        ("select c_row.txt from dual", "no field 'txt' in 'c_row.txt'. Fields: text, name, deep."),
        ("select *, id from dual", "column 'id' more than once"),
        ("select name + 1 as x from dual", "'\\+' needs two numbers, but `name` is string"),
        ("select id from dual lateral view explode(name) as x", "EXPLODE needs an array"),
        ("select pmod(name, c_row) as x from dual", "the query does not fit its input"),
    ],
)
def test_mistakes_that_only_the_columns_show_are_explained(
    run: Any, query: str, message: str
) -> None:
    with pytest.raises(UserError, match=f"^Sql: .*{message}"):
        run(query, NESTED)
