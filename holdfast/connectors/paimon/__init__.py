"""Paimon tables, as a sink.

Spark writes Parquet files into a hidden folder of the table; a commit moves them to where the
table's files are and names them, and this job's number, in the table's next snapshot.
Read `sink.py` first.  The table's own files are read and written here, without a library of
Paimon's: `snapshots.py` and `manifests.py` know their layout, `table.py` changes them, and
`binary_row.py` the encoding of values in them.
"""
