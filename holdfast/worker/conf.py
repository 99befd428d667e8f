"""The Spark settings Holdfast runs with, and why each is there."""

SPARK_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Times without a zone mean the same on every machine.
    "spark.sql.session.timeZone": "UTC",
    # SeaTunnel has a TIME type; Spark 4.3 has one behind this switch.
    "spark.sql.timeType.enabled": "true",
    # Python tasks stall about 40 ms each on loopback TCP without it.
    "spark.python.unix.domain.socket.enabled": "true",
    # Each DataFrame call would otherwise record its Python caller.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Below 48 MB Spark would turn Arrow into rows in the driver, five times slower.
    "spark.sql.execution.arrow.localRelationThreshold": "1b",
    # Progress is read from task metrics, which travel with the heartbeat.
    "spark.executor.heartbeatInterval": "1s",
    # Lake formats and other readers want plain microseconds, not INT96.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # One task's slices take turns with another's.
    "spark.scheduler.mode": "FAIR",
    # Files written as .lzo by SeaTunnel's sinks are read by their ending.
    "spark.hadoop.io.compression.codecs": ",".join(
        (
            "org.apache.hadoop.io.compress.GzipCodec",
            "org.apache.hadoop.io.compress.BZip2Codec",
            "org.apache.hadoop.io.compress.DeflateCodec",
            "org.apache.hadoop.io.compress.SnappyCodec",
            "org.apache.hadoop.io.compress.Lz4Codec",
            "io.airlift.compress.lzo.LzopCodec",
        )
    ),
    # A sink's staged folder holds data files only.
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
