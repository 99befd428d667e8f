"""Options that SeaTunnel's connectors have and ours lack, each with what to do instead.

A job that sets one wants something done.  To ignore it would do something else without a word, so
it is a mistake however the file comes; a word that SeaTunnel does not know either was dead there.
"""

_NO_KERBEROS = (
    "Kerberos is not supported; name a place or an account that can be reached without it."
)
_KERBEROS = dict.fromkeys(
    ("use_kerberos", "kerberos_principal", "kerberos_keytab_path", "krb5_path"), _NO_KERBEROS
)
_HADOOP = {
    "remote_user": "Files are written as the user that the worker runs as.",
    "hdfs_site_path": "Give Hadoop's settings in env as spark.hadoop.NAME = value.",
}
_UPDATE = "Every run reads all files that it finds; choose them by file_filter_pattern."
_SCAN = "With discovery_mode = continuous new files are found as they come; remove it."
_START = "All files that are there are read; choose them by file_filter_modified_start."
_MOVED = "Files that were read stay where they are; move them after the run."
_SPLIT = "Large files are split without it, at the ends of rows."
_LATER_TABLES = "A table that fails, fails the job; give it a job of its own."
_ALL_SINKS = {"multi_table.failure_policy": _LATER_TABLES}

LACKS: dict[str, dict[str, str]] = {
    "source LocalFile": {
        **_KERBEROS, **_HADOOP,
        "scan_interval": _SCAN, "start_mode": _START,
        "sync_mode": _UPDATE, "target_path": _UPDATE, "target_hadoop_conf": _UPDATE,
        "update_strategy": _UPDATE, "compare_mode": _UPDATE,
        "post_sync_action": _MOVED, "backup_path": _MOVED, "retention_max_age": _MOVED,
        "retention_check_interval": _MOVED,
        "enable_file_split": _SPLIT, "file_split_size": _SPLIT,
    },
    "sink LocalFile": {
        **_ALL_SINKS, **_KERBEROS, **_HADOOP,
        "archive_compress_codec": "Files are packed one by one: use compress_codec.",
    },
    "sink Jdbc": {
        **_ALL_SINKS, **_KERBEROS,
        "dialect": "The dialect follows from url: PostgreSQL and MySQL are known.",
        "schema": "Name the schema before the table: table = \"schema.name\".",
        "tablePrefix": "Write it into table: table = \"prefix_${table_name}\".",
        "tableSuffix": "Write it into table: table = \"${table_name}_suffix\".",
        "socket_timeout_ms": "A statement may take as long as it takes; remove it.",
        "connect_timeout_ms": "Use connection_check_timeout_sec, which is in seconds.",
        "is_primary_key_updated": "An update of a key is a delete and an insert; remove it.",
        "support_upsert_by_insert_only": "Use enable_upsert = true with primary_keys.",
        "access_key_id": "Give user and password.",
        "secret_access_key": "Give user and password.",
        "region": "Give url, user and password.",
        "decimal_type_narrowing": "Types are kept as they are; remove it.",
        "int_type_narrowing": "Types are kept as they are; remove it.",
        "handle_blob_as_string": "Types are kept as they are; cast with a Sql transform.",
    },
    "sink Iceberg": {
        **_ALL_SINKS, **_KERBEROS,
        "custom_sql": "Use data_save_mode = DROP_DATA to empty the table first.",
        "iceberg.table.config": "Use iceberg.table.write-props or iceberg.table.auto-create-props.",
    },
    "sink Paimon": {
        **_ALL_SINKS,
        "paimon.table.non-primary-key": "Without paimon.table.primary-keys a table gets the keys"
        " of its source; a Sql transform that names the columns drops them.",
        "catalog_name": "A filesystem catalog is known by its warehouse; remove it.",
        "user": "A filesystem catalog has no users.",
        "password": "A filesystem catalog has no users.",
        "dynamic-bucket.target-row-num": "Give a number of buckets in paimon.table.write-props:"
        " bucket = 4.",
        "dynamic-bucket.initial-buckets": "Give a number of buckets in paimon.table.write-props:"
        " bucket = 4.",
        "changelog-tmp-path": "No temporary place is needed; remove it.",
    },
    "sink Console": _ALL_SINKS,
    "sink Assert": _ALL_SINKS,
    "transform DataValidator": {
        "row_error_handle_way.error_table": "Rows that fail are counted with SKIP, or end the job"
        " with FAIL.",
    },
}  # fmt: skip
"""By role and connector: an option and what a user of it does here."""


def instead(about: str, option: str) -> str | None:
    """Return what to do about an option that SeaTunnel has and ours lacks; None: no such option.

    `about` names the plug-in as messages do, with more behind a colon.
    """
    known = LACKS.get(about.partition(":")[0], {})
    return next((said for o, said in known.items() if _same(o, option)), None)


def _same(known: str, option: str) -> bool:
    return known == option or option.startswith(known + ".")
