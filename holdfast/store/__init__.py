"""Where control state is kept: one small contract and its implementations.

Read `contract.py` first, then `memory.py`, which is the contract in a hundred lines; `open.py`
finds the store a URL names.  May import `model` and `errors`.  Every implementation passes the same
conformance kit (`holdfast.testing.check_store`).
"""
