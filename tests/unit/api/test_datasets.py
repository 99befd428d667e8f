"""What is read and written has the names that lineage tools know, and never a secret in them."""

import pytest

from holdfast.api.job_graph import datasets_of
from holdfast.model.tree import Plain

PG = "jdbc:postgresql://u:secret@db.shop:6432/shop?password=secret"


@pytest.mark.parametrize(
    ("plugin", "options", "tables", "found"),
    [
        ("LocalFile", {"path": "/data/out"}, ["shop.orders"], [("file", "/data/out")]),
        (
            "LocalFile",
            {"path": "/data/${table_name}"},
            ["shop.orders", "shop.lines"],
            [("file", "/data/orders"), ("file", "/data/lines")],
        ),
        ("Delta", {"path": "s3a://key:secret@lake/t"}, [], [("s3://lake", "t")]),
        ("Delta", {"path": "file:///data/t"}, [], [("file", "/data/t")]),
        (
            "Paimon",
            {"warehouse": "/lake", "database": "d", "table": "${table_name}"},
            ["shop.orders"],
            [("file", "/lake/d.db/orders")],
        ),
        (
            "Iceberg",
            {"iceberg.catalog.config": {"warehouse": "s3://b/w"}, "namespace": "n", "table": "t"},
            [],
            [("s3://b", "w/n/t")],
        ),
        (
            "Jdbc",
            {"url": PG, "table": "public.orders"},
            ["x.y"],
            [("postgres://db.shop:6432", "shop.public.orders")],
        ),
        (
            "Jdbc",
            {"url": "jdbc:mysql://m/shop", "database": "shop", "table": "${table_name}"},
            ["a.orders"],
            [("mysql://m:3306", "shop.orders")],
        ),
        (
            "Jdbc",
            {"url": "jdbc:mysql://h:not-a-port/x", "table": "t"},
            ["t"],
            [("holdfast:Jdbc", "t")],
        ),
        ("Console", {}, ["shop.orders"], [("holdfast:Console", "shop.orders")]),
        ("Console", {}, [], [("holdfast:Console", "Sink[0]-Console")]),
    ],
)
def test_names_of_what_sinks_write(
    plugin: str, options: dict[str, Plain], tables: list[str], found: list[tuple[str, str]]
) -> None:
    named = datasets_of(plugin, f"Sink[0]-{plugin}", options, tables, source=False)
    assert list(named) == found
    assert "secret" not in str(named)


def test_a_source_is_named_by_its_own_tables() -> None:
    options: dict[str, Plain] = {"url": PG, "table": "ignored"}
    named = datasets_of("Jdbc", "Source[0]-Jdbc", options, ["shop.a", "b"], source=True)
    assert [d.name for d in named] == ["shop.a", "shop.b"]
