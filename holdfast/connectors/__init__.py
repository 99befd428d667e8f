"""The connectors that come with Holdfast, one file or folder each.

Each depends on `connect` alone, as a connector of anyone else does.  `pyspark` is imported inside
methods, so that options can be checked without it.  No module imports this package: the registry
finds it.
"""
