"""What must hold, checked over what happened.

A story is a list of events: the simulator's history, or the event logs that real processes wrote.
Each check is a small generator over a `Story` that yields one text for each violation, beginning
with the number of the invariant it breaks.  Read `check.py` first; `events.py` holds the
vocabulary, and every other module one group of invariants.  May import `master`, `core`, `wire`.
"""
