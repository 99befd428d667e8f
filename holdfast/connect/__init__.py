"""The contract for plug-ins: what a connector author reads, and all an author needs.

Read `source.py`, `transform.py` and `sink.py` first, then `options.py`.  May import `model` and
`errors`; `pyspark` only where types are checked, so that options can be read without Spark.
"""
