"""Real masters, workers, Spark and stores, killed for real.

Each scenario runs on a cluster of processes of this machine, strikes at a named failpoint, waits
for its hit (never for a time), lets everything come to rest, and then shows the event logs to the
oracle and the rows to a reader that shares no code with the sinks.  Read `scene.py` first: what a
scenario may do; `cluster.py` holds the processes, and `windows_*.py` the scenarios.

`make chaos STORE=sqlite|etcd|postgres [ONLY=E03,E04]` runs them; see docs/chaos.md.
"""
