"""The Sql transform: SeaTunnel's query language, translated function by function to Spark SQL.

`dialect.py` reads a query, `translate.py` walks its syntax tree with the function tables
(`functions_*.py`), and `transform.py` is the plug-in; read that first.  `projection.py` runs what
SeaTunnel knows (one table, row by row), `relational.py` what it does not (joins, aggregates).
Translation asks Spark for types through a callable, so all of it can be read without Spark.
"""
