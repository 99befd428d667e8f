"""Tables of PostgreSQL, MySQL and MariaDB, as a sink that writes every row once.

Spark's tasks load rows into a staging table of their slice (`stage.py`); the leader moves them
into the target in the transaction that also writes a ledger row (`commit.py`).  `database.py` says
what is asked of a server, `postgres.py` and `mysql.py` answer.  Read `sink.py` first.
"""
