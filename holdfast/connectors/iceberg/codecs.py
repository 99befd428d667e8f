"""How Parquet files may be compressed."""

CODECS = {
    # Iceberg's name: Spark's
    "zstd": "zstd", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4_raw", "uncompressed": "none",
}  # fmt: skip
