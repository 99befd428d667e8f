"""Faults that independent readers have found in our lake tables: one test for each, by its name."""

import datetime as dt
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.sql import DataFrame, SparkSession

from holdfast.connect.batches import Batches
from holdfast.connect.plugin import Context
from holdfast.connect.sink import Identifier, Sink, Staging
from holdfast.connect.tables import Rows, Tables
from holdfast.connectors.delta.log import DeltaLog
from holdfast.connectors.delta.options import DeltaSinkOptions
from holdfast.connectors.delta.sink import DeltaSink
from holdfast.connectors.iceberg.numbers import numbered_footer
from holdfast.connectors.iceberg.options import IcebergSinkOptions
from holdfast.connectors.iceberg.sink import IcebergSink
from holdfast.connectors.iceberg.thrift import list_of, split_footer
from holdfast.connectors.lake.place import Place
from holdfast.connectors.paimon.options import PaimonSinkOptions
from holdfast.connectors.paimon.sink import PaimonSink
from holdfast.errors import HoldfastError, UserError
from holdfast.errors import Place as FilePlace
from holdfast.model.job import Mode, Role, Stage
from holdfast.model.table import Column, Table, TablePath
from holdfast.model.tree import Block
from holdfast.model.types import parse_type
from holdfast.worker.failures import explained

pytestmark = pytest.mark.spark

PLACE = "shop.orders"
SINKS = ("delta", "iceberg", "paimon")


def context(name: str) -> Context:
    return Context("7", "job", f"Sink[0]-{name}", Mode.BATCH)


def delta(path: Path, **options: Any) -> DeltaSink:
    return DeltaSink(DeltaSinkOptions(path=str(path / "delta"), **options), context("Delta"))


def iceberg(path: Path, **options: Any) -> IcebergSink:
    catalog = {"type": "hadoop", "warehouse": str(path)}
    made = IcebergSinkOptions(catalog=catalog, namespace="${database_name}", **options)
    return IcebergSink(made, context("Iceberg"))


def paimon(path: Path, **options: Any) -> PaimonSink:
    named = {"warehouse": str(path), "database": "${database_name}", "table": "${table_name}"}
    return PaimonSink(PaimonSinkOptions(**named, **options), context("Paimon"))


def partitioned(kind: str, path: Path, by: str) -> Sink[Any]:
    """Return a sink of one kind that partitions its table."""
    if kind == "delta":
        return delta(path, partition_keys=[by])
    return (
        iceberg(path, partition_keys=by) if kind == "iceberg" else paimon(path, partition_keys=by)
    )


def put(one: Sink[Any], rows: DataFrame | Rows, number: int = 1) -> int:
    """Write and commit rows, as a worker does."""
    given = rows if isinstance(rows, Rows) else Rows.of(PLACE, rows)
    here = FilePlace("job.conf", 1, 1)
    stage = Stage("sink", Role.SINK, one.name, Block((), here), (), None, 1, here)
    with explained(stage):
        made = one.write(Tables([given]), Staging("7", "t", 1, number))
    one.commit(Identifier("u", number), made)
    return sum(c.rows for c in made)


def adds(path: Path) -> list[dict[str, Any]]:
    """Return what the log of a Delta table says of its files."""
    lines = [
        json.loads(line)
        for version in sorted((path / "delta" / "_delta_log").glob("*.json"))
        for line in version.read_text().splitlines()
    ]
    return [line["add"] for line in lines if "add" in line]


def opened(path: Path) -> StaticTable:
    return StaticTable.from_metadata(str(path / "shop" / "orders"))


def table(**columns: str) -> Table:
    made = tuple(Column(name, parse_type(kind)) for name, kind in columns.items())
    return Table(TablePath.parse(PLACE), made)


def with_nan(spark: SparkSession) -> Rows:
    """Return rows that tasks carry as Arrow; one has no number, and the others are below 2."""

    def read(_: Any) -> Iterator[pa.RecordBatch]:
        values = [1.0, math.nan, 1.5]
        yield pa.RecordBatch.from_arrays(
            [pa.array([1, 2, 3], pa.int64()), pa.array(values, pa.float64())], ["id", "n"]
        )

    columns = table(id="bigint", n="double").columns
    batches = Batches(spark, columns, (0,), read, 100)
    return Rows(table(id="bigint", n="double"), batches.frame, batches)


def test_l01_an_instant_in_a_delta_partition_has_its_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.sql(
        "SELECT 1L AS id, TIMESTAMP'2024-02-29 12:34:56.123456' AS at UNION ALL"
        " SELECT 2L, NULL UNION ALL SELECT 3L, TIMESTAMP'0001-01-01 00:00:00'"
    )
    put(delta(tmp_path, partition_keys=["at"]), frame)
    said = {str(a["partitionValues"]["at"]) for a in adds(tmp_path)}
    assert said == {"2024-02-29T12:34:56.123456Z", "None", "0001-01-01T00:00:00.000000Z"}
    found = DeltaTable(tmp_path / "delta").to_pyarrow_table().to_pylist()
    at = dt.datetime(2024, 2, 29, 12, 34, 56, 123456, tzinfo=dt.UTC)
    first = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
    assert {r["id"]: r["at"] for r in found} == {1: at, 2: None, 3: first}


NESTED = (
    "SELECT 1L AS id, 'k' AS part, array(named_struct('a', 1, 'm', map('x', array(2L)))) AS many,"
    " map('k', named_struct('b', 5)) AS pairs, named_struct('deep', array('z')) AS box"
)


@pytest.mark.parametrize("keys", ["", "part"], ids=["plain", "partitioned"])
def test_l02_iceberg_knows_fields_in_lists_and_maps_by_number(
    spark: SparkSession, tmp_path: Path, keys: str
) -> None:
    put(iceberg(tmp_path, partition_keys=keys), spark.sql(NESTED))
    (file,) = (tmp_path / "shop" / "orders" / "data").rglob("*.parquet")
    there = {f"{n}": opened(tmp_path).schema().find_column_name(n)
             for n in opened(tmp_path).schema().field_ids}  # fmt: skip
    assert numbers(pq.read_schema(file)) == set(there), "every field has its number"
    catalog = iceberg(tmp_path)._catalog
    with catalog.load_table(("shop", "orders")).update_schema() as change:
        change.delete_column("many")
    with catalog.load_table(("shop", "orders")).update_schema() as change:
        change.add_column("many", StringType())
    (row,) = opened(tmp_path).scan().to_arrow().to_pylist()
    assert row["many"] is None, "what was dropped does not come back under its old name"
    assert (row["box"], row["pairs"]) == ({"deep": ["z"]}, [("k", {"b": 5})])
    assert "schema.name-mapping.default" not in opened(tmp_path).properties


def numbers(fields: Any) -> set[str]:
    """Return the field ids that Arrow has read from a file, of fields and of those inside."""
    found = set()
    for field in fields:
        found.add((field.metadata or {}).get(b"PARQUET:field_id", b"none").decode())
        kind = field.type
        if pa.types.is_struct(kind):
            found |= numbers([kind.field(n) for n in range(kind.num_fields)])
        elif pa.types.is_map(kind):
            found |= numbers([kind.key_field, kind.item_field])
        elif pa.types.is_list(kind):
            found |= numbers([kind.value_field])
    return found


def test_l01_values_of_every_type_have_their_text(spark: SparkSession, tmp_path: Path) -> None:
    keys = {
        "f": "true", "b": "-1Y", "i": "7", "d": "CAST(0.0000001 AS DECIMAL(20,10))", "n": "1.5D",
        "day": "DATE'0001-02-03'", "local": "TIMESTAMP_NTZ'0002-01-01 01:02:03.5'",
    }  # fmt: skip
    columns = ", ".join(f"{sql} AS {name}" for name, sql in keys.items())
    put(delta(tmp_path, partition_keys=list(keys)), spark.sql(f"SELECT 1L AS id, {columns}"))
    (file,) = adds(tmp_path)
    assert file["partitionValues"] == {
        "f": "true", "b": "-1", "i": "7", "d": "0.0000001000", "n": "1.5", "day": "0001-02-03",
        "local": "0002-01-01 01:02:03.500000",
    }  # fmt: skip
    (row,) = DeltaTable(tmp_path / "delta").to_pyarrow_table().to_pylist()
    assert row["local"] == dt.datetime(2, 1, 1, 1, 2, 3, 500000)


def test_l02_only_the_footer_is_changed_and_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    put(iceberg(tmp_path), spark.sql(NESTED).unionAll(spark.sql(NESTED)).coalesce(1))
    (file,) = (tmp_path / "shop" / "orders" / "data").rglob("*.parquet")
    data = file.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    before, elements, after = split_footer(footer)
    assert before + list_of(elements) + after == footer, "read and written, a footer is the same"
    assert numbered_footer(footer, opened(tmp_path).schema()) == footer, "numbers are set once"
    assert pq.ParquetFile(file).metadata.num_rows == 2
    (entry,) = opened(tmp_path).inspect.files().to_pylist()
    assert entry["file_size_in_bytes"] == len(data)


@pytest.mark.parametrize("way", ["arrow", "spark"])
def test_l03_a_column_with_nan_has_no_bounds(spark: SparkSession, tmp_path: Path, way: str) -> None:
    given = with_nan(spark)
    rows = given if way == "arrow" else given.with_frame(given.frame)
    for one in (delta(tmp_path / "d"), iceberg(tmp_path / "i"), paimon(tmp_path / "p")):
        put(one, rows)
    (file,) = adds(tmp_path / "d")
    stats = json.loads(file["stats"])
    assert stats["maxValues"] == {"id": 3}
    assert stats["nullCount"] == {"id": 0, "n": 0}
    (entry,) = opened(tmp_path / "i").inspect.files().to_pylist()
    assert entry["readable_metrics"]["n"]["upper_bound"] is None
    assert entry["readable_metrics"]["id"]["upper_bound"] == 3
    assert bounded_columns(tmp_path / "p" / "shop.db" / "orders" / "manifest") == ["id"]


def bounded_columns(manifests: Path) -> list[str]:
    """Return the columns that the only manifest of a Paimon table has bounds of."""
    (name,) = manifests.glob("manifest-????????-*-0")
    with name.open("rb") as file:
        (entry,) = fastavro.reader(file)
    assert isinstance(entry, dict)
    found: list[str] = entry["_FILE"]["_VALUE_STATS_COLS"]
    return found


def test_l04_bounds_of_years_before_1000_have_four_digits(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(delta(tmp_path), spark.sql("SELECT 1L AS id, TIMESTAMP'0001-02-03 04:05:06.007' AS at"))
    (file,) = adds(tmp_path)
    assert json.loads(file["stats"])["minValues"]["at"] == "0001-02-03T04:05:06.007Z"
    data = DeltaTable(tmp_path / "delta").to_pyarrow_dataset()
    early = ds.field("at") < pa.scalar(
        dt.datetime(2, 1, 1, tzinfo=dt.UTC), pa.timestamp("us", "UTC")
    )
    assert data.to_table(filter=early)["id"].to_pylist() == [1]


def test_l05_a_text_like_sparks_null_stays_a_text(spark: SparkSession, tmp_path: Path) -> None:
    values = [(1, "__HIVE_DEFAULT_PARTITION__"), (2, None), (3, "x"), (4, "null")]
    frame = spark.createDataFrame(values, "id bigint, city string").coalesce(1)
    for kind in SINKS:
        put(partitioned(kind, tmp_path / kind, "city"), frame)
    found = DeltaTable(tmp_path / "delta" / "delta").to_pyarrow_table().to_pylist()
    assert sorted((r["id"], r["city"]) for r in found) == values
    found = opened(tmp_path / "iceberg").scan().to_arrow().to_pylist()
    assert sorted((r["id"], r["city"]) for r in found) == values


def test_l05_an_empty_text_that_delta_would_make_null_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="partitioned by city, and a value of it is the empty text"):
        put(delta(tmp_path, partition_keys=["city"]), spark.sql("SELECT 1L AS id, '' AS city"))


def limited_delta(spark: SparkSession, path: Path, spelled: str) -> DeltaSink:
    about = {"__CHAR_VARCHAR_TYPE_STRING": spelled}
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {}},
        {"name": "city", "type": "string", "nullable": True, "metadata": about},
    ]
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": fields}))
    DeltaTable.create(path / "delta", schema)
    return delta(path)


def limited_paimon(spark: SparkSession, path: Path, spelled: str) -> PaimonSink:
    one = paimon(path)
    put(one, spark.sql("SELECT 0L AS id, CAST(NULL AS STRING) AS city"))
    (file,) = (path / "shop.db" / "orders" / "schema").iterdir()
    content = json.loads(file.read_text())
    content["fields"][1]["type"] = spelled
    file.write_text(json.dumps(content))
    return one


@pytest.mark.parametrize("kind", ["delta", "paimon"])
def test_l06_a_text_longer_than_its_column_is_refused(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    make = limited_delta if kind == "delta" else limited_paimon
    spelled = "varchar(3)" if kind == "delta" else "VARCHAR(3)"
    one = make(spark, tmp_path, spelled)
    assert put(one, spark.sql("SELECT 1L AS id, 'żół' AS city UNION ALL SELECT 2L, NULL"), 2) == 2
    with pytest.raises(UserError) as found:
        put(one, spark.sql("SELECT 1L AS id, 'ab' AS city UNION ALL SELECT 2L, 'oslo'"), 3)
    said = str(found.value)
    assert f"column city is {spelled} in the table" in said
    assert "a value has more characters: oslo. Change it" in said
    assert "Exception" not in said


def test_l06_a_char_is_filled_up_and_limits_inside_others_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    put(limited_delta(spark, tmp_path / "a", "char(4)"), spark.sql("SELECT 1L AS id, 'ab' AS city"))
    found = DeltaTable(tmp_path / "a" / "delta").to_pyarrow_table().to_pylist()
    assert found == [{"id": 1, "city": "ab  "}]
    with pytest.raises(UserError, match=r"texts of limited length inside city \(array<varchar"):
        limited_delta(spark, tmp_path / "b", "array<varchar(3)>").prepare(
            [table(id="bigint", city="string")]
        )
    nested = limited_paimon(spark, tmp_path / "c", "STRING")
    (file,) = (tmp_path / "c" / "shop.db" / "orders" / "schema").iterdir()
    text = file.read_text().replace('"STRING"', '{"type": "ARRAY", "element": "VARCHAR(3)"}')
    file.write_text(text)
    with pytest.raises(UserError, match="column city has texts or bytes of limited length inside"):
        nested.prepare([table(id="bigint", city="array<string>")])


def test_l07_the_last_moment_of_9999_is_written(spark: SparkSession, tmp_path: Path) -> None:
    for_ever = "TIMESTAMP'9999-12-31 23:59:59.999999'"
    frame = spark.sql(f"SELECT 1L AS id, {for_ever} AS at")
    put(delta(tmp_path), frame)
    (file,) = adds(tmp_path)
    assert json.loads(file["stats"])["minValues"] == {"id": 1}
    (row,) = DeltaTable(tmp_path / "delta").to_pyarrow_table().to_pylist()
    assert row["at"] == dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)


@pytest.mark.parametrize("kind", SINKS)
def test_l07_days_and_moments_beyond_9999_are_written(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    make = {"delta": delta, "iceberg": iceberg, "paimon": paimon}[kind]
    frame = spark.sql(
        "SELECT 1L AS id, date_from_unix_date(10000000) AS d, timestamp_micros(999999999999999999)"
        " AS at"
    )
    assert put(make(tmp_path), frame) == 1
    with pytest.raises(
        UserError, match=r"a value of it is in no year from 1 to 9999: \+29349-01-26"
    ):
        put(partitioned(kind, tmp_path / "p", "d"), frame)


def test_l08_a_delta_folder_does_not_look_like_a_column_it_is_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    values = [(1, "a b/c=%"), (2, "x"), (3, "y" * 215), (4, "a/b")]
    frame = spark.createDataFrame(values, "id bigint, city string").coalesce(1)
    put(delta(tmp_path, partition_keys=["city"]), frame)
    folders = {a["path"].rpartition("/")[0] for a in adds(tmp_path)}
    assert {f for f in folders if "=" in f} == {"city=x"}
    found = DeltaTable(tmp_path / "delta").to_pyarrow_table().to_pylist()
    assert sorted((r["id"], r["city"]) for r in found) == values


def test_l09_iceberg_tables_of_version_1_are_written(spark: SparkSession, tmp_path: Path) -> None:
    one = iceberg(tmp_path, create_props={"format-version": "1"}, partition_keys="city")
    put(one, spark.sql("SELECT 1L AS id, 'x' AS city"))
    put(one, spark.sql("SELECT 2L AS id, 'y' AS city"), 2)
    assert opened(tmp_path).metadata.format_version == 1
    found = opened(tmp_path).scan(row_filter="city = 'y'").to_arrow().to_pylist()
    assert found == [{"id": 2, "city": "y"}]
    assert {r["record_count"] for r in opened(tmp_path).inspect.files().to_pylist()} == {1}


FEATURES = ["inCommitTimestamp", "clustering", "typeWidening", "allowColumnDefaults", "rowTracking"]


def with_feature(path: Path, name: str) -> DeltaSink:
    """Make a table that asks for a feature, as others would."""
    fields = [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]
    schema = Schema.from_json(json.dumps({"type": "struct", "fields": fields}))
    DeltaTable.create(path / "delta", schema)
    log = path / "delta" / "_delta_log"
    readers = ["typeWidening"] if name == "typeWidening" else []
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers,
                "writerFeatures": [name]}  # fmt: skip
    number = len(list(log.glob("*.json")))
    (log / f"{number:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    return delta(path)


@pytest.mark.parametrize("name", FEATURES)
def test_l10_a_delta_feature_that_is_not_kept_is_refused_by_its_name(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UserError, match=f"the table asks for the table feature {name}, which"):
        with_feature(tmp_path, name).prepare([table(id="bigint")])


def test_l10_a_commit_that_the_library_refuses_is_no_lost_race(tmp_path: Path) -> None:
    with_feature(tmp_path, "clustering")
    log = DeltaLog.load(Place(str(tmp_path / "delta")))
    assert log is not None
    with pytest.raises(UserError, match=r"Unsupported table features.*Nobody else has changed"):
        log.add(Identifier("u", 1), [])


def test_l11_paimon_manifests_in_another_format_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = paimon(tmp_path)
    put(one, spark.sql("SELECT 1L AS id"))
    (file,) = (tmp_path / "shop.db" / "orders" / "schema").iterdir()
    content = json.loads(file.read_text())
    content["options"]["manifest.format"] = "orc"
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"manifest\.format = orc is not possible: manifests are"):
        one.prepare([table(id="bigint")])


@pytest.mark.parametrize("kind", SINKS)
def test_l12_a_partition_value_that_names_no_folder_is_refused_in_words(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    one = partitioned(kind, tmp_path, "city")
    frame = spark.sql("SELECT 1L AS id, concat('os', CAST(X'00' AS STRING), 'lo') AS city")
    with pytest.raises(HoldfastError) as found:
        put(one, frame)
    said = str(found.value)
    assert isinstance(found.value, UserError)
    assert "partitioned by city, and a value of it has a NUL character: os␀lo. Change it" in said
    long = spark.sql("SELECT 1L AS id, repeat('/', 90) AS city")
    with pytest.raises(UserError, match="a value of it is too long for the name of a folder: ///"):
        put(one, long)
    assert put(one, spark.sql("SELECT 1L AS id, repeat('x', 215) AS city"), 2) == 1


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("write.format.default", "orc", r"files of orc \(write.format.default"),
        ("write.data.path", "/elsewhere", "files outside its own folder"),
        ("write.folder-storage.path", "/elsewhere", "files outside its own folder"),
        ("write.location-provider.impl", "a.b.C", "files where other code says"),
        ("write.metadata.metrics.default", "some", "metrics of a kind that there is not"),
    ],
)
def test_l13_properties_of_iceberg_that_are_not_kept_are_refused(
    tmp_path: Path, name: str, value: str, said: str
) -> None:
    catalog = iceberg(tmp_path)._catalog
    schema = IcebergSchema(NestedField(1, "id", LongType()))
    catalog.create_table(
        ("shop", "orders"), schema, partition_spec=PartitionSpec(), properties={name: value}
    )
    with pytest.raises(UserError, match=said):
        iceberg(tmp_path).prepare([table(id="bigint")])
    if name == "write.format.default":
        iceberg(tmp_path, write_props={name: "parquet"}).prepare([table(id="bigint")])


def test_l13_places_and_metrics_of_iceberg_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "shop" / "orders"
    wishes = {
        "write.data.path": f"file://{home}/elsewhere", "write.object-storage.enabled": "true",
        "write.metadata.metrics.default": "counts",
        "write.metadata.metrics.column.name": "truncate(2)",
        "write.metadata.metrics.column.none": "none", "write.metadata.metrics.column.whole": "full",
    }  # fmt: skip
    named = ("id", "name", "none", "whole")
    fields = (NestedField(n, name, StringType()) for n, name in enumerate(named, 1))
    iceberg(tmp_path)._catalog.create_table(
        ("shop", "orders"), IcebergSchema(*fields), partition_spec=PartitionSpec(),
        properties=wishes,
    )  # fmt: skip
    long = "'a long text of more than 16'"
    put(
        iceberg(tmp_path),
        spark.sql(f"SELECT 'x' AS id, {long} AS name, {long} AS none, {long} AS whole"),
    )
    (file,) = opened(tmp_path).inspect.files().to_pylist()
    metrics = file["readable_metrics"]
    assert [metrics[n]["value_count"] for n in named] == [1, 1, None, 1]
    assert [metrics[n]["lower_bound"] for n in named] == [None, "a ", None, long[1:-1]]
    where = Path(file["file_path"].removeprefix("file://")).relative_to(home / "elsewhere")
    assert [len(piece) for piece in where.parts[:4]] == [4, 4, 4, 8], "spread as the library does"
    assert opened(tmp_path).scan().to_arrow().num_rows == 1
