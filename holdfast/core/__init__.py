"""Decisions, and nothing else: no clock, no I/O, no randomness, no logging.

Each machine is a table of moves, a `step(state, event) -> state` and an `owed(state) -> effects`.
Read `pipeline.py` first: it puts task, checkpoint, completion and commit together into the one
record that a keeper saves.  May import `model` and `errors`.
"""
