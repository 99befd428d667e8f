"""Which benchmarks there are, in the order in which a reader meets them, and how long each takes.

The name is that of the module; its `main(results)` runs it.
"""

USUAL_MINUTES = {
    "batch": 8.0,
    "jdbc": 2.7,
    "streaming": 4.7,
    "safety": 1.9,
    "control": 4.4,
    "failover": 1.8,
    "sinks": 3.5,
    "commits": 1.0,
    "waiting": 2.5,
    "upgrade": 1.5,
}

BY_NAME = ("sinks", "commits", "waiting", "upgrade")
"""Those that `make bench` leaves out: they look into what `batch` and `streaming` show as a whole,
at what waits when nobody commits, or at a promise about one command.
"""
