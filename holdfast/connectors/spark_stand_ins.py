"""Connectors of SeaTunnel that are not here, and the options with which Spark does their work."""


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
