"""A deterministic simulation of masters, workers, store, network, blobs and tables.

One thread, virtual time, one seed: the same seed gives the same history.  The masters are the real
ones; what they stand on is simulated, with every fault that a machine room has.  Read `world.py`
first, then `oracle.py`, which says what must hold.
"""
