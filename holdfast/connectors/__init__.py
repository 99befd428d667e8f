"""The connectors that come with Holdfast, one file or folder each.

Each stands on `connect` alone, as anyone else's would.  `pyspark` is imported inside methods, so
that options can be checked without it.  Nobody imports this package: the registry finds it.
"""
