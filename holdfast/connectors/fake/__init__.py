"""FakeSource: rows invented inside Spark.  Read `source.py` first, then `values.py`."""
