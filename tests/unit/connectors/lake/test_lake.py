"""What lake sinks share: footers, places, and how rows fit a table."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.connect.library import load_library
from holdfast.connect.sink import Leftovers, Staging
from holdfast.connectors.lake.fit import fit
from holdfast.connectors.lake.footers import partition_values, staged_parts
from holdfast.connectors.lake.location import Location
from holdfast.connectors.lake.staging import staging_folder, sweep
from holdfast.errors import UserError
from holdfast.model.table import Column
from holdfast.model.types import parse_type


def columns(**types: str) -> list[Column]:
    return [Column(name, parse_type(kind)) for name, kind in types.items()]


def test_footers_tell_what_is_in_files(tmp_path: Path) -> None:
    day = dt.date(2024, 2, 29)
    table = pa.table(
        {
            "id": pa.array([3, 1, None], pa.int64()),
            "price": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(10, 2)),
            "day": pa.array([day, None, None], pa.date32()),
            "none": pa.array([None, None, None], pa.string()),
            "nan": pa.array([1.0, float("inf"), 2.0]),
            "many": pa.array([[1], [2, 3], None]),
        }
    )
    folder = tmp_path / "city=a%2Fb" / "n=n"
    folder.mkdir(parents=True)
    pq.write_table(
        table, folder / "part-0.parquet", row_group_size=1, store_decimal_as_integer=True
    )
    pq.write_table(table.slice(0, 0), tmp_path / "part-1.parquet")
    (tmp_path / ".part-0.parquet.crc").write_text("x")
    (part,) = staged_parts(Location(str(tmp_path)), ["city", "n"])
    assert (part.rows, part.partition, len(part.offsets)) == (3, ("a/b", "n"), 3)
    assert part.bytes == (folder / "part-0.parquet").stat().st_size
    found = {n: (s.nulls, s.low, s.high) for n, s in part.columns.items()}
    assert found == {
        "id": (1, 1, 3),
        "price": (1, Decimal("-2.25"), Decimal("1.50")),
        "day": (2, day, day),
        "none": (3, None, None),
        "nan": (0, None, None),
    }


def test_partition_values_are_read_back() -> None:
    assert partition_values("a=1/b=x%3Dy/part.parquet", 2) == ("1", "x=y")
    assert partition_values("part.parquet", 0) == ()


def test_rows_fit_a_table_in_its_order_and_its_spelling() -> None:
    there = columns(Id="bigint", price="decimal(20,4)", name="string", tags="array<float>")
    arriving = columns(tags="float_vector", name="string", ID="int", price="decimal(10,2)")
    assert list(fit(there, arriving, "x").items()) == [
        ("Id", "CAST(`ID` AS bigint)"),
        ("price", "CAST(`price` AS decimal(20,4))"),
        ("name", "`name`"),
        ("tags", "`tags`"),
    ]
    assert [*fit(there, columns(id="bigint"), "x")] == ["Id"]


@pytest.mark.parametrize(
    ("arriving", "said"),
    [
        ({"id": "string", "name": "string"}, "id is bigint in the table and arrives as string"),
        ({"id": "decimal(10,0)", "name": "string"}, "arrives as decimal"),
        ({"id": "bigint"}, "name (string) does not arrive"),
        ({"id": "bigint", "name": "string", "x": "date"}, "x (date) is not in the table"),
    ],
)
def test_every_difference_is_named(arriving: dict[str, str], said: str) -> None:
    with pytest.raises(UserError) as found:
        fit(columns(id="bigint", name="string"), columns(**arriving), "x", ["name"])
    assert said in str(found.value)


def test_a_sweep_takes_leftovers_of_every_table_and_nothing_else(tmp_path: Path) -> None:
    made = {}
    for table in ("a", "b"):
        for attempt in (1, 2):
            name = staging_folder(Staging("7", "t", attempt, 1, "i1"), 0)
            made[table, attempt] = tmp_path / table / name
            made[table, attempt].mkdir(parents=True)
    (tmp_path / "a" / "_delta_log").mkdir()
    sweep(Location(f"{tmp_path}/${{table_name}}"), Leftovers("7", "i1", "t", 2))
    assert {key: path.exists() for key, path in made.items()} == {
        ("a", 1): False, ("a", 2): True, ("b", 1): False, ("b", 2): True,
    }  # fmt: skip
    assert (tmp_path / "a" / "_delta_log").exists()


def test_places_have_the_name_that_each_library_wants(tmp_path: Path) -> None:
    local = Location(f"file://{tmp_path}/a%20b")
    assert (local.path, local.plain_url) == (f"{tmp_path}/a b", f"{tmp_path}/a b")
    assert local.spark_url == f"file://{tmp_path}/a%20b"
    remote = Location(
        "s3a://bucket/x/", {"fs.s3a.endpoint": "http://here:1", "fs.s3a.access.key": "k"}
    )
    assert (remote.path, remote.plain_url) == ("bucket/x", "s3://bucket/x")
    assert remote.below("y", "z").spark_url == "s3a://bucket/x/y/z"
    assert remote.storage_options == {
        "AWS_ENDPOINT_URL": "http://here:1", "AWS_ACCESS_KEY_ID": "k", "AWS_ALLOW_HTTP": "true",
    }  # fmt: skip


def test_a_missing_library_says_how_to_get_it() -> None:
    with pytest.raises(UserError, match=r"pip install 'holdfast\[delta\]'"):
        load_library("no_such_library_here", "Delta", "delta")
