"""Iceberg tables, as a sink.

Spark writes Parquet files into a hidden folder of the table; a commit moves them to where the
table's files are and adds them, and this job's number, to the table in one transaction.
Read `sink.py` first; `table.py`, `hadoop.py` and `catalog.py` speak to the library.
"""
