"""Tests for those who write a store of their own: public, and the same ones ours must pass.

`await check_store(open)` runs all of them.  May import `store`, `connect`, `model` and `errors`;
nothing of Holdfast imports it.  Read `check_store.py` first.
"""
