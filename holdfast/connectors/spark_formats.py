"""What the Spark connector knows of formats: their options, a look at what they write, and which of
them stand in for connectors of SeaTunnel.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.connect.checks import CheckReport
from holdfast.connect.placeholders import resolve
from holdfast.model.secret import Secret
from holdfast.model.table import Table
from holdfast.model.tree import Block, Node, Plain, Scalar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET_NAMES = re.compile(r"pass|secret|token|credential|key|auth|sas|signature", re.IGNORECASE)
WHERE = (
    "url", "path", "dbtable", "query", "table", "database", "collection", "subscribe", "topic",
)  # fmt: skip
"""Options of formats that name a place, in small letters."""


@dataclass(frozen=True, slots=True)
class SparkWriterSettings:
    """A format's own options.  Those whose names sound like credentials are never shown."""

    plain: dict[str, str]
    secret: dict[str, Secret]

    type_text = "block"

    @classmethod
    def from_node(cls, node: Node, where: str, report: CheckReport) -> "SparkWriterSettings":
        """Read the block; nested keys are joined with dots."""
        if not isinstance(node, Block):
            raise ValueError("the options of a format are a block { ... }")
        plain: dict[str, str] = {}
        secret: dict[str, Secret] = {}
        for key, entry in node.leaves():
            if not isinstance(entry.node, Scalar):
                report.error(entry.place, f"{where}.{key} is not a single value.")
            elif SECRET_NAMES.search(key):
                secret[key] = Secret(entry.node.text)
            else:
                plain[key] = entry.node.text
        return cls(plain, secret)

    def identity(self) -> Plain:
        """Return those that say what is read or written, and not how."""
        return {key: text for key, text in sorted(self.plain.items()) if key.lower() in WHERE}

    def for_spark(self, table: Table | None = None) -> dict[str, str]:
        """Return all of them as Spark takes them, with a table's placeholders filled in."""
        plain = resolve(self.plain, table) if table else self.plain
        return plain | {key: value.reveal() for key, value in self.secret.items()}


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """Where rows go, as Spark has it.  `refuses`: nothing may be there before the first row."""

    format: str
    path: str | None
    table: str | None
    settings: Mapping[str, str]
    refuses: bool


def look_at(where: SparkTarget, spark: "SparkSession") -> Iterator[str]:
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


def _jdbc(kind: str) -> str:
    return f'format = jdbc, options {{ url = "jdbc:{kind}://...", dbtable = ... }}'


JDBC = {
    name: _jdbc(kind)
    for name, kind in {
        "clickhouse": "clickhouse", "doris": "mysql", "starrocks": "mysql", "phoenix": "phoenix",
        "snowflake": "snowflake", "oceanbase": "oceanbase",
    }.items()
}  # fmt: skip

FILES = dict.fromkeys(
    ("s3file", "ossfile", "ossjindofile", "cosfile", "obsfile", "hdfsfile"),
    'format = parquet, path = "s3a://... or hdfs://..."',
)

WITH_JARS = {
    "kafka": 'format = kafka, options { kafka.bootstrap.servers = "...", subscribe = ... }',
    "mongodb": 'format = mongodb, options { connection.uri = "...", database = ... }',
    "elasticsearch": 'format = es, path = index, options { es.nodes = "..." }',
    "cassandra": "format = org.apache.spark.sql.cassandra, options { keyspace = ..., table = ... }",
    "redis": "format = org.apache.spark.sql.redis, options { table = ... }",
    "kudu": 'format = kudu, options { kudu.master = "...", kudu.table = ... }',
    "hudi": 'format = hudi, path = "..."',
}
"""Formats whose jar must be named in env { jars }."""

FOR_SOURCES = {
    **JDBC, **FILES, **WITH_JARS,
    "jdbc": _jdbc("..."),
    "hive": "table = database.name",
    "iceberg": 'format = iceberg, path = "..."',
    "delta": 'format = delta, path = "..."',
    "paimon": 'format = paimon, path = "..."',
}  # fmt: skip

FOR_SINKS = {
    **JDBC, **FILES, **WITH_JARS,
    "kafka": 'format = kafka, options { kafka.bootstrap.servers = "...", topic = ... }',
    "hive": "table = database.name",
}  # fmt: skip
