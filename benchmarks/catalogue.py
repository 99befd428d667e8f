"""Which benchmarks there are, in the order in which a reader meets them, and how long each takes.

The name is that of the module; its `main(results)` runs it.
"""

USUAL_MINUTES = {
    "batch": 5.0,
    "jdbc": 2.0,
    "sinks": 2.0,
    "commits": 1.0,
    "streaming": 4.0,
    "safety": 2.0,
    "control": 3.0,
    "failover": 3.0,
}
