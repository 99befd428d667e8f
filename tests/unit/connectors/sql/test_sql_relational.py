"""Queries over whole tables, which SeaTunnel does not run."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from holdfast.connect.plugin import PluginContext
from holdfast.connect.rows import Rows, Tables
from holdfast.connectors.sql.transform import Sql, SqlOptions
from holdfast.errors import UserError
from holdfast.model.job import Mode
from holdfast.model.table import TablePath

ORDERS = """
    SELECT * FROM VALUES (1, 10, 2.50BD, timestamp_ntz'2024-01-05 10:00:00'),
      (2, 10, 1.00BD, timestamp_ntz'2024-02-05 10:00:00'),
      (3, 20, 4.00BD, timestamp_ntz'2024-02-06 10:00:00')
    AS orders(id, customer, price, at)
"""
CUSTOMERS = "SELECT * FROM VALUES (10, 'Ann'), (20, 'Bob'), (30, 'Cy') AS customers(id, name)"


def _join(query: str, inputs: Mapping[str, Tables]) -> Rows:
    options = SqlOptions(query=query)
    assert list(options.problems()) == []
    transform = Sql(options, PluginContext("1", "test", "Transform[0]-Sql", Mode.BATCH))
    (rows,) = transform.join(inputs)
    return rows


@pytest.fixture
def inputs(spark: SparkSession) -> dict[str, Tables]:
    """Two datasets: one table, and one with two tables."""
    orders = Rows.of("shop.orders", spark.sql(ORDERS))
    customers = Rows.of("crm.customers", spark.sql(CUSTOMERS))
    return {"o": Tables([orders]), "many": Tables([customers, orders.renamed(_path("crm.old"))])}


def _path(text: str) -> TablePath:
    return TablePath.parse(text)


def _rows(made: Rows) -> list[tuple[Any, ...]]:
    return [tuple(r) for r in made.frame.collect()]


@pytest.mark.spark
def test_inputs_are_joined_and_grouped_by_their_names(inputs: dict[str, Tables]) -> None:
    made = _join(
        """select c.name || '!' as who, count(*) n, sum(o.price) as total,
             max(formatdatetime(o.at, 'MM')) last_month
           from o join customers c on o.customer = c.id and c.name <> 'x'
           group by c.name || '!' having count(*) >= 1 order by total desc, 1 limit 5""",
        inputs,
    )
    assert str(made.table.path) == "shop.orders"
    assert _rows(made) == [
        ("Bob!", 1, Decimal("4.00"), "02"), ("Ann!", 2, Decimal("3.50"), "02"),
    ]  # fmt: skip


@pytest.mark.spark
def test_types_are_known_inside_with_and_sub_queries(inputs: dict[str, Tables]) -> None:
    made = _join(
        """with big as (select id, customer, price / 2 as half, 'at ' || at as said from o)
           select b.id, b.half, b.said, b.id / 2 as whole,
             (select max(name) from customers k where k.id = b.customer) as name
           from big b where exists (select 1 from customers k where k.id = b.customer)
             and b.id in (select id from crm.old where id < 3)
           order by b.id""",
        inputs,
    )
    assert [str(c.type) for c in made.table.columns][:4] == [
        "int", "decimal(3,2)", "string", "int",
    ]  # fmt: skip
    assert _rows(made) == [
        (1, Decimal("1.25"), "at 2024-01-05T10:00", 0, "Ann"),
        (2, Decimal("0.50"), "at 2024-02-05T10:00", 1, "Ann"),
    ]


@pytest.mark.spark
def test_one_input_may_be_counted_ranked_and_united(run: Any) -> None:
    made = run(
        """select customer, id, row_number() over (partition by customer order by id desc) as rank
           from dual where datediff(at, at) = 0 union all
           select customer, -1, count(id) over () from dual where id = 3
           order by customer, id""",
        ORDERS,
        key="id",
    )
    assert made.table.primary_key is None
    assert _rows(made) == [(10, 1, 2), (10, 2, 1), (20, -1, 1), (20, 3, 1)]


@pytest.mark.spark
def test_sorting_and_limits_keep_the_key(run: Any) -> None:
    made = run("select id, price from dual order by price desc limit 1", ORDERS, key="id")
    assert made.table.primary_key is not None
    assert _rows(made) == [(3, Decimal("4.00"))]


@pytest.mark.spark
def test_lateral_views_work_beside_groups(run: Any) -> None:
    made = run(
        """select part, count(*) filter (where part <> 'z') n
           from dual lateral view explode(split(name, ',')) as part
           group by part order by part""",
        "SELECT * FROM VALUES ('a,b'), ('b,') AS t(name)",
    )
    assert _rows(made) == [("a", 1), ("b", 2)]


@pytest.mark.spark
def test_a_changelog_cannot_be_grouped(run: Any) -> None:
    changes = f"SELECT *, 'INSERT' AS __kind FROM ({ORDERS})"
    with pytest.raises(UserError, match="carries updates and deletes"):
        run("select count(*) as n from dual", changes)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select * from o join nobody on true", "no table 'nobody'. Inputs and their tables: o,"),
        ("select o.* from o join customers c on o.nope = c.id", "does not fit its input"),
        ("select * from o join customers c on o.customer = c.id", "'id' more than once"),
    ],
)
def test_mistakes_of_a_join_are_explained(
    inputs: dict[str, Tables], query: str, message: str
) -> None:
    with pytest.raises(UserError, match=f"^Sql: .*{message}"):
        _join(query, inputs)


@pytest.mark.spark
def test_no_view_is_left_behind(spark: SparkSession, run: Any) -> None:
    run("select count(*) as n from dual", ORDERS)
    assert [t.name for t in spark.catalog.listTables() if t.name.startswith("holdfast")] == []
