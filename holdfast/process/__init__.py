"""Real processes: masters and workers, put together from their parts.

Read `local_run.py` first: it is a whole cluster in one process.  May import everything but the
command line and the connectors.
"""
