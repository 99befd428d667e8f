"""FakeSource: rows made up inside Spark.  Read `source.py` first, then `values.py`."""
