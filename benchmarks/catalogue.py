"""Which benchmarks there are, in the order in which a reader meets them, and how long each takes.

The name is that of the module; its `main(results)` runs it.
"""

USUAL_MINUTES = {
    "batch": 4.6,
    "jdbc": 2.7,
    "streaming": 3.5,
    "safety": 2.7,
    "control": 4.7,
    "failover": 2.0,
    "sinks": 3.5,
    "commits": 1.0,
}

BY_NAME = ("sinks", "commits")
"""Those that `make bench` leaves out: they look into what `batch` and `streaming` show as a whole.
"""
