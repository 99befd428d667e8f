"""What tables ask for and we do not do, and values they do not take, are refused in words."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable, Schema
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import LongType, NestedField, StringType
from pyspark.sql import SparkSession

from holdfast.connect.sink import CommitId
from holdfast.connectors.delta.library import DeltaLog
from holdfast.connectors.delta.writer import DeltaSink
from holdfast.connectors.lake.location import Location
from holdfast.connectors.paimon.writer import PaimonSink
from holdfast.errors import HoldfastError, UserError
from tests.unit.connectors.lake.lake_tables import (
    SINKS,
    delta,
    iceberg,
    opened,
    paimon,
    partitioned,
    put,
    table,
)

pytestmark = pytest.mark.spark


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
    log = DeltaLog.load(Location(str(tmp_path / "delta")))
    assert log is not None
    with pytest.raises(UserError, match=r"Unsupported table features.*No other writer has changed"):
        log.add(CommitId("u", 1), [])


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


@pytest.mark.parametrize("kind", SINKS)
def test_rows_that_do_not_fit_are_refused_with_every_difference(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    open_sink = {"delta": delta, "iceberg": iceberg, "paimon": paimon}[kind]
    put(open_sink(tmp_path), spark.sql("SELECT 1 AS id, 'x' AS city"))
    with pytest.raises(UserError) as found:
        open_sink(tmp_path).prepare([table(id="bigint", city="date", zip="string")])
    said = str(found.value)
    assert "id is int in the table and arrives as bigint" in said
    assert "city is string in the table and arrives as date" in said
    assert "zip (string) is not in the table" in said
    with pytest.raises(UserError, match="arrives as bigint"):
        put(open_sink(tmp_path), spark.sql("SELECT 1L AS id, 'x' AS city"), 2)
    left = [p for hidden in tmp_path.rglob("_holdfast") for p in hidden.iterdir()]
    assert left == [], "nothing staged is left"
