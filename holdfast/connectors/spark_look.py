"""Open what the Spark sink writes at once, before a job runs: database, table, file system."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Where:
    """Where rows go, as Spark is told.  `refuses`: nothing may be there before the first row."""

    format: str
    path: str | None
    table: str | None
    settings: Mapping[str, str]
    refuses: bool


def look_at(where: Where, spark: "SparkSession") -> Iterator[str]:
    """Open the place; raise what Spark raises, and yield what the mode forbids."""
    if where.table:
        there = spark.catalog.tableExists(where.table)
        named = f"the table {where.table}"
    elif where.format == "jdbc":
        there = _find_by_jdbc(where.settings, spark)
        named = f"the table {where.settings.get('dbtable', '')}"
    elif where.path:
        there = _find_folder(where.path, spark)
        named = where.path
    else:
        return
    if there and where.refuses:
        yield (
            f"Sink Spark cannot write to {named}: it is there already, and mode = errorifexists."
            " Choose another one, or set mode = append or overwrite."
        )


def _find_by_jdbc(settings: Mapping[str, str], spark: "SparkSession") -> bool:
    """Log in as Spark's writer does, and say whether the table is there."""
    jvm: Any = spark.sparkContext._jvm
    given = jvm.java.util.HashMap()
    for name, value in settings.items():
        given.put(name, value)
    known = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given)
    jdbc = jvm.org.apache.spark.sql.execution.datasources.jdbc
    options = jdbc.JdbcOptionsInWrite(known)
    dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(options.url())
    connection = dialect.createConnectionFactory(options).apply(-1)
    try:
        return bool(jdbc.JdbcUtils.tableExists(connection, options))
    finally:
        connection.close()


def _find_folder(path: str, spark: "SparkSession") -> bool:
    """Ask a path's file system, which may need a jar, a login and a route, whether it is there."""
    jvm: Any = spark.sparkContext._jvm
    there = jvm.org.apache.hadoop.fs.Path(path)
    files = there.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return bool(files.exists(there))
