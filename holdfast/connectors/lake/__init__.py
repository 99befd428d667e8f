"""What sinks for lake tables share: native staging by Spark, footers, places, and save modes.

Spark writes Parquet into a folder of one try inside the table (`stage.py`); the footers tell what
is in the files (`footers.py`); a sink's commit then adds them to the table, without Spark.
"""
