"""What runs beside the reference engines: it does what lines of JSON on its input ask for.

Nothing of Holdfast is imported here.  Values come back in one plain form, whoever has read them:
numbers with fractions as texts with all their digits, instants in microseconds, days since 1970.
"""

import datetime as dt
import json
import math
import os
import struct
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

SESSION_ZONE = "America/New_York"
"""Far from where tables are written: what depends on it is not an instant."""

EPOCH = dt.datetime(1970, 1, 1)


def plain(value):
    """Return a value in the plain form."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dt.datetime):
        naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return (naive - EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - EPOCH.date()).days
    if isinstance(value, dict):
        return sorted([plain(k), plain(v)] for k, v in value.items())
    if isinstance(value, list | tuple):  # rows of Spark are tuples
        return [plain(one) for one in value]
    return value


class Reference:
    """Spark with the jars of Delta, Iceberg and Paimon, and readers of Python."""

    def __init__(self, folder, jars):
        from pyspark.sql import SparkSession

        iceberg = "org.apache.iceberg.spark"
        conf = {
            "spark.master": "local[2]", "spark.jars": jars, "spark.ui.enabled": "false",
            "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1",
            "spark.sql.warehouse.dir": f"{folder}/spark-warehouse",
            "spark.sql.session.timeZone": SESSION_ZONE,
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
            f"{iceberg}.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.catalog.ice": f"{iceberg}.SparkCatalog",
            "spark.sql.catalog.ice.type": "hadoop",
            "spark.sql.catalog.ice.warehouse": f"{folder}/warehouse",
            "spark.sql.catalog.ice.cache-enabled": "false",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        }  # fmt: skip
        builder = SparkSession.builder.appName("reference")
        for key, value in conf.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")

    def sql(self, statements):
        """Run statements; return the rows of the last one."""
        rows = None
        for one in statements:
            rows = self.spark.sql(one)
        return [plain(row) for row in rows.collect()]

    def ids(self, table, predicates):
        """Return the ids of the rows that each predicate finds; each is a query of its own."""
        queries = (f"SELECT id FROM {table} WHERE {one}" for one in predicates)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda one: self.spark.sql(one).collect(), queries))
        return [sorted(row[0] for row in rows) for rows in found]

    def deltalake(self, path):
        """Read a Delta table with delta-rs."""
        from deltalake import DeltaTable

        return arrow_rows(DeltaTable(path).to_pyarrow_table())

    def polars(self, path, kind):
        """Read a table with polars."""
        import polars as pl

        frame = pl.scan_delta(path) if kind == "delta" else pl.scan_iceberg(path)
        return arrow_rows(frame.collect().to_arrow())

    def daft(self, path, kind):
        """Read a table with daft."""
        import daft
        from pyiceberg.table import StaticTable

        if kind == "delta":
            return arrow_rows(daft.read_deltalake(path).to_arrow())
        return arrow_rows(daft.read_iceberg(StaticTable.from_metadata(path)).to_arrow())

    def pyiceberg(self, path, row_filter=None):
        """Read an Iceberg table with pyiceberg."""
        from pyiceberg.table import StaticTable

        table = StaticTable.from_metadata(path)
        scan = table.scan(row_filter=row_filter) if row_filter else table.scan()
        return arrow_rows(scan.to_arrow())

    def paimon_read(self, warehouse, table, predicates=()):
        """Read a Paimon table with its own Java; return rows, or ids for each predicate."""
        found = self._paimon(warehouse).getTable(self._named(table))
        if not predicates:
            return java_rows(self.spark._jvm, found, None)
        builder = self.spark._jvm.org.apache.paimon.predicate.PredicateBuilder(found.rowType())
        wanted = [self._predicate(found, builder, one) for one in predicates]
        return [sorted(r[0] for r in java_rows(self.spark._jvm, found, one)) for one in wanted]

    def paimon_create(self, warehouse, table, columns, partitions=(), keys=(), options=None):
        """Make a Paimon table with its own Java; `columns` has the types as Paimon spells them."""
        jvm = self.spark._jvm
        catalog = self._paimon(warehouse)
        catalog.createDatabase(table.partition(".")[0], True)
        schema = jvm.org.apache.paimon.schema.Schema.newBuilder()
        for name, kind in columns.items():
            schema = schema.column(name, java_type(jvm, kind))
        schema = schema.partitionKeys(java_list(jvm, partitions)).primaryKey(java_list(jvm, keys))
        for key, value in (options or {}).items():
            schema = schema.option(key, value)
        catalog.createTable(self._named(table), schema.build(), False)
        return True

    def paimon_write(self, warehouse, table, rows):
        """Add rows with Paimon's own Java; whole numbers are for columns of type INT."""
        jvm = self.spark._jvm
        found = self._paimon(warehouse).getTable(self._named(table))
        builder = called(jvm, found, "newBatchWriteBuilder")
        write, commit = builder.newWrite(), builder.newCommit()
        write.withIOManager(jvm.org.apache.paimon.disk.IOManager.create("/tmp"))
        for row in rows:
            made = jvm.org.apache.paimon.data.GenericRow(len(row))
            for at, value in enumerate(row):
                made.setField(at, java_value(jvm, found.rowType().getTypeAt(at), value))
            write.write(made)
        commit.commit(write.prepareCommit())
        write.close()
        commit.close()
        return True

    def paimon_maintain(self, warehouse, table, partitions=((),), buckets=1):
        """Compact every bucket of a keyed table, and let all snapshots but the last one go."""
        jvm = self.spark._jvm
        found = self._paimon(warehouse).getTable(self._named(table))
        builder = called(jvm, found, "newBatchWriteBuilder")
        write, commit = builder.newWrite(), builder.newCommit()
        write.withIOManager(jvm.org.apache.paimon.disk.IOManager.create("/tmp"))
        for _ in partitions:
            for bucket in range(buckets):
                write.compact(jvm.org.apache.paimon.data.BinaryRow.EMPTY_ROW, bucket, True)
        commit.commit(write.prepareCommit())
        write.close()
        commit.close()
        config = jvm.org.apache.paimon.options.ExpireConfig.builder()
        config = config.snapshotRetainMin(1).snapshotRetainMax(1).build()
        return int(called(jvm, found, "newExpireSnapshots").config(config).expire())

    def _paimon(self, warehouse):
        jvm = self.spark._jvm
        options = jvm.org.apache.paimon.options.Options()
        options.set("warehouse", warehouse)
        context = jvm.org.apache.paimon.catalog.CatalogContext.create(options)
        return jvm.org.apache.paimon.catalog.CatalogFactory.createCatalog(context)

    def _named(self, table):
        database, _, name = table.partition(".")
        return self.spark._jvm.org.apache.paimon.catalog.Identifier.create(database, name)

    def _predicate(self, table, builder, said):
        """Return a predicate: [name of a method of Paimon's builder, column, value]."""
        method, column, value = said
        at = table.rowType().getFieldIndex(column)
        if value is None:
            return getattr(builder, method)(at)
        kind = table.rowType().getTypeAt(at)
        return getattr(builder, method)(at, java_value(self.spark._jvm, kind, value))


def arrow_rows(table):
    """Return the rows of an Arrow table, columns in the order of their names."""
    names = sorted(table.column_names)
    return [[arrow_plain(row[name]) for name in names] for row in table.select(names).to_pylist()]


def arrow_plain(value):
    """Return what Arrow gives in the plain form; its maps are lists of pairs."""
    if isinstance(value, list) and value and all(isinstance(one, tuple) for one in value):
        return sorted([arrow_plain(k), arrow_plain(v)] for k, v in value)
    if isinstance(value, dict):
        return [arrow_plain(one) for one in value.values()]
    if isinstance(value, list):
        return [arrow_plain(one) for one in value]
    return plain(value)


def java_list(jvm, items):
    """Return a list of Java's."""
    made = jvm.java.util.ArrayList()
    for one in items:
        made.add(one)
    return made


def java_type(jvm, text):
    """Return a type of Paimon's, such as INT or VARCHAR(3)."""
    name, _, rest = text.partition("(")
    sizes = [int(size) for size in rest.rstrip(")").split(",") if size]
    return getattr(jvm.org.apache.paimon.types.DataTypes, name)(*sizes)


def java_value(jvm, kind, value):
    """Return a value as Paimon's rows have it; Python's numbers become Integer, Long or Double."""
    name, data = kind.getTypeRoot().toString(), jvm.org.apache.paimon.data
    if value is None:
        return None
    if name.startswith("TIMESTAMP"):
        return data.Timestamp.fromMicros(value)
    if name in ("CHAR", "VARCHAR"):
        return data.BinaryString.fromString(value)
    if name == "DECIMAL":
        number = jvm.java.math.BigDecimal(value)
        return data.Decimal.fromBigDecimal(number, kind.getPrecision(), kind.getScale())
    return float(value) if name == "DOUBLE" else value


def called(jvm, table, method):
    """Call a method of Paimon's tables, whose classes are hidden from all but Java itself."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    of = table.getClass().getClassLoader().loadClass("org.apache.paimon.table.Table")
    found = of.getMethod(method, gateway.new_array(jvm.java.lang.Class, 0))
    return found.invoke(table, gateway.new_array(jvm.java.lang.Object, 0))


def java_rows(jvm, table, predicate):
    """Return what Paimon's Java reads, in the plain form, columns in the order of their names."""
    builder = called(jvm, table, "newReadBuilder")
    if predicate is not None:
        builder = builder.withFilter(predicate)
    read = builder.newRead().executeFilter() if predicate is not None else builder.newRead()
    kind = table.rowType()
    names = list(kind.getFieldNames())
    order = sorted(range(len(names)), key=names.__getitem__)
    first = names.index("id")
    rows = []
    for split in builder.newScan().plan().splits():
        found = jvm.org.apache.paimon.reader.RecordReaderIterator(read.createReader(split))
        while found.hasNext():
            row = found.next()
            get = jvm.org.apache.paimon.data.InternalRow.createFieldGetter
            wanted = [first] if predicate is not None else order
            rows.append(
                [from_java(jvm, kind.getTypeAt(n), get(kind.getTypeAt(n), n).getFieldOrNull(row))
                 for n in wanted]
            )  # fmt: skip
        found.close()
    return rows


def from_java(jvm, kind, value):
    """Return a value of Paimon's in the plain form."""
    if value is None:
        return None
    name = kind.getTypeRoot().toString()
    if name in ("CHAR", "VARCHAR"):
        return value.toString()
    if name.startswith("TIMESTAMP"):
        return value.toMicros()
    if name == "DECIMAL":
        return plain(value.toBigDecimal())
    if name == "ARRAY":
        return java_items(jvm, kind.getElementType(), value)
    if name == "MAP":
        keys = java_items(jvm, kind.getKeyType(), value.keyArray())
        values = java_items(jvm, kind.getValueType(), value.valueArray())
        return sorted(map(list, zip(keys, values, strict=True)))
    if name == "ROW":
        get = jvm.org.apache.paimon.data.InternalRow.createFieldGetter
        kinds = [kind.getTypeAt(n) for n in range(kind.getFieldCount())]
        return [
            from_java(jvm, one, get(one, n).getFieldOrNull(value)) for n, one in enumerate(kinds)
        ]
    if name == "FLOAT":
        (value,) = struct.unpack("f", struct.pack("f", value))  # by way of its shortest text
    return plain(value)


def java_items(jvm, kind, array):
    """Return the items of an array of Paimon's."""
    get = jvm.org.apache.paimon.data.InternalArray.createElementGetter(kind)
    return [from_java(jvm, kind, get.getElementOrNull(array, n)) for n in range(array.size())]


def main():
    """Answer requests until there are no more."""
    folder, jars = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed goes to the log
    reference = Reference(folder, jars)
    for line in sys.stdin:
        given = json.loads(line)
        try:
            said = {"found": getattr(reference, given.pop("do"))(**given)}
        except Exception as error:  # noqa: BLE001 - whatever it is, the test that asked shows it
            traceback.print_exc()
            said = {"error": str(error)[:2000]}
        answers.write(json.dumps(said) + "\n")
        answers.flush()
    reference.spark.stop()


if __name__ == "__main__":
    main()
