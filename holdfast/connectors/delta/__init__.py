"""Delta Lake tables, as a sink.

Spark writes Parquet files into a hidden folder of the table; a commit moves them to where the
table's files are and adds them, and this job's number, to the table's log in one transaction.
Read `sink.py` first; only `log.py` speaks to the library.
"""
