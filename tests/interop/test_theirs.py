"""Tables that others have made and keep in order, with rows of ours added before and after."""

from typing import Any

import pytest

from holdfast.errors import UserError
from tests.interop.cases import VALUES, rows_sql
from tests.interop.tables import World, differences

pytestmark = pytest.mark.interop

COLUMNS = [c for c in VALUES if c not in ("i8", "i16")]
"""Iceberg has no whole numbers of one and two bytes: they arrive as INT, and are read as INT."""

CHECKED = ["r64", "at"]


def create(world: World, kind: str, name: str, *rest: str) -> None:
    """Have Spark make a table with a column of every type."""
    described = ", ".join(f"{c} {VALUES[c][0]}" for c in COLUMNS)
    using = f"CREATE TABLE {world.named(kind, name)} (id BIGINT, {described}) USING {kind}"
    world.engine.sql(f"{using} {' '.join(rest)}")


def moved(sql: str, by: int) -> str:
    """Return the rows of a query with other ids."""
    return f"SELECT id + {by} AS id, * EXCEPT (id) FROM ({sql})"


DELTAS = {
    "vectors": "TBLPROPERTIES (delta.enableDeletionVectors = true)",
    "feed": "TBLPROPERTIES (delta.enableChangeDataFeed = true)",
    "days": "PARTITIONED BY (day)",
}
ICEBERGS = {
    "v1": "TBLPROPERTIES ('format-version' = '1')",
    "v2": "TBLPROPERTIES ('format-version' = '2', 'write.metadata.metrics.default' = 'full')",
    "days": "PARTITIONED BY (day)",
    "hashed": "TBLPROPERTIES ('write.object-storage.enabled' = 'true')",
}


@pytest.mark.parametrize(
    ("kind", "name"), [("delta", n) for n in DELTAS] + [("iceberg", n) for n in ICEBERGS]
)
def test_rows_of_theirs_and_ours_and_maintenance_between(
    world: World, kind: str, name: str
) -> None:
    made = f"theirs_{name}"
    create(world, kind, made, (DELTAS if kind == "delta" else ICEBERGS)[name])
    rows = rows_sql(COLUMNS, nested=False)
    if (kind, name) == ("iceberg", "days"):
        # Iceberg's own rewrite_manifests moves this day, which Java's old calendar has not.
        said = {"day": "CASE WHEN day <> DATE'1582-10-10' THEN day END AS day"}
        rows = f"SELECT id, {', '.join(said.get(c, c) for c in COLUMNS)} FROM ({rows})"
    table = world.named(kind, made)
    world.engine.sql(
        f"INSERT INTO {table} {moved(rows, 100)}", f"DELETE FROM {table} WHERE id > 101"
    )
    world.put(world.sink(kind, made), world.spread(rows))
    maintain(world, kind, made)
    world.put(world.sink(kind, made), world.spread(moved(rows, 200)))
    kept = f"SELECT * FROM ({moved(rows, 100)}) WHERE id <= 101"
    whole = f"{rows} UNION ALL {kept} UNION ALL {moved(rows, 200)}"
    assert differences(world, kind, made, whole, COLUMNS, CHECKED) == []


def maintain(world: World, kind: str, name: str) -> None:
    """Have the table's own project put its files together, and let go of the old ones."""
    table = world.named(kind, name)
    if kind == "delta":
        world.engine.sql(f"OPTIMIZE {table}", f"VACUUM {table} RETAIN 0 HOURS")
        return
    call, named = "CALL ice.system", f"table => 'db.{name}'"
    every = "options => map('rewrite-all', 'true')"
    world.engine.sql(
        f"{call}.rewrite_data_files({named}, {every})",
        f"{call}.rewrite_manifests({named})",
        f"{call}.expire_snapshots({named}, older_than => now(), retain_last => 1)",
    )


def test_a_column_that_iceberg_has_dropped_does_not_come_back(world: World) -> None:
    sql = "SELECT 1L AS id, array(named_struct('a', 1)) AS many, map('k', array(2)) AS pairs"
    world.put(world.sink("iceberg", "dropped"), world.spark.sql(sql))
    table = world.named("iceberg", "dropped")
    (found,) = world.engine.sql(f"SELECT id, many, pairs FROM {table}")
    assert found == [1, [[1]], [["k", [2]]]]
    world.engine.sql(
        f"ALTER TABLE {table} DROP COLUMN many", f"ALTER TABLE {table} ADD COLUMN many STRING",
        f"ALTER TABLE {table} RENAME COLUMN pairs TO pairs2",
    )  # fmt: skip
    (found,) = world.engine.sql(f"SELECT id, many, pairs2 FROM {table}")
    assert found == [1, None, [["k", [2]]]]
    more = "SELECT 2L AS id, map('x', array(3)) AS pairs2, 'new' AS many"
    world.put(world.sink("iceberg", "dropped"), world.spark.sql(more))
    found = world.engine.sql(f"SELECT id, many, pairs2 FROM {table} ORDER BY id")
    assert found == [[1, None, [["k", [2]]]], [2, "new", [["x", [3]]]]]


def test_lengths_that_spark_has_given_delta_columns_are_kept(world: World) -> None:
    table = world.named("delta", "short")
    world.engine.sql(f"CREATE TABLE {table} (id BIGINT, v VARCHAR(3), c CHAR(4)) USING delta")
    world.put(world.sink("delta", "short"), world.spark.sql("SELECT 1L AS id, 'żół' v, 'ab' c"))
    assert world.engine.sql(f"SELECT * FROM {table} WHERE c = 'ab'") == [[1, "żół", "ab  "]]
    with pytest.raises(Exception, match="a value has more characters: oslo"):
        world.put(world.sink("delta", "short"), world.spark.sql("SELECT 1L AS id, 'oslo' v"))


FEATURES = {
    "delta.enableInCommitTimestamps = true": "inCommitTimestamp",
    "delta.enableTypeWidening = true": "typeWidening",
    "delta.enableRowTracking = true": "row tracking",
    "delta.columnMapping.mode = name": "column mapping",
    "delta.feature.allowColumnDefaults = supported": "allowColumnDefaults",
}


@pytest.mark.parametrize("asked", FEATURES)
def test_what_delta_asks_for_and_we_do_not_do_is_refused(world: World, asked: str) -> None:
    name = f"asks_{list(FEATURES).index(asked)}"
    properties = ", ".join(f"'{k}' = '{v}'" for k, v in [asked.split(" = ")])
    table = world.named("delta", name)
    world.engine.sql(f"CREATE TABLE {table} (id BIGINT) USING delta TBLPROPERTIES ({properties})")
    with pytest.raises(UserError, match=FEATURES[asked]):
        world.put(world.sink("delta", name), world.spark.sql("SELECT 1L AS id"))


def test_a_clustered_delta_table_is_refused(world: World) -> None:
    table = world.named("delta", "clustered")
    world.engine.sql(f"CREATE TABLE {table} (id BIGINT) USING delta CLUSTER BY (id)")
    with pytest.raises(UserError, match="the table feature clustering"):
        world.put(world.sink("delta", "clustered"), world.spark.sql("SELECT 1L AS id"))


def paimons(world: World, name: str) -> list[list[Any]]:
    """Return what Java finds in a Paimon table, sorted; nulls come first."""
    found: list[list[Any]] = world.engine.ask(
        "paimon_read", warehouse=world.paimon, table=f"db.{name}"
    )
    return sorted(found, key=lambda row: [(value is not None, value) for value in row])


def paimon(world: World, do: str, name: str, **given: Any) -> None:
    """Have Java do something to a Paimon table."""
    world.engine.ask(f"paimon_{do}", warehouse=world.paimon, table=f"db.{name}", **given)


def test_paimon_tables_that_java_has_made_take_our_rows(world: World) -> None:
    columns = {"id": "INT", "name": "VARCHAR(5)", "part": "STRING"}
    paimon(world, "create", "theirs", columns=columns, partitions=["part"])
    paimon(world, "write", "theirs", rows=[[1, "java", "a b/c=%"], [2, None, None]])
    ours = "SELECT 3 AS id, 'żółte' AS name, 'a b/c=%' AS part UNION ALL SELECT 4, '', NULL"
    world.put(world.sink("paimon", "theirs"), world.spark.sql(ours))
    wanted = [
        [1, "java", "a b/c=%"], [2, None, None], [3, "żółte", "a b/c=%"], [4, "", None],
    ]  # fmt: skip
    assert paimons(world, "theirs") == wanted
    with pytest.raises(Exception, match="a value has more characters: longer"):
        longer = "SELECT 5 AS id, 'longer' AS name, 'p' AS part"
        world.put(world.sink("paimon", "theirs"), world.spark.sql(longer))


def test_paimon_keys_with_javas_compaction_between(world: World) -> None:
    options = {"bucket": "1", "sequence.field": "at", "file.format": "parquet"}
    columns = {"id": "INT", "name": "STRING", "at": "INT"}
    paimon(world, "create", "keyed", columns=columns, keys=["id"], options=options)
    rows = "SELECT id, name, at FROM VALUES {} AS t(id, name, at)"
    world.put(
        world.sink("paimon", "keyed"),
        world.spark.sql(rows.format("(1, 'a', 1), (2, 'b', 1), (3, 'c', 5)")),
    )
    paimon(world, "write", "keyed", rows=[[2, "java", 2], [4, "java", 1]])
    paimon(world, "maintain", "keyed")
    world.put(
        world.sink("paimon", "keyed"),
        world.spark.sql(rows.format("(1, 'ours', 2), (3, 'late', 4), (5, 'new', 1)")),
    )
    paimon(world, "maintain", "keyed")
    # columns in the order of their names: at, id, name
    wanted = [[1, 4, "java"], [1, 5, "new"], [2, 1, "ours"], [2, 2, "java"], [5, 3, "c"]]
    assert paimons(world, "keyed") == wanted
