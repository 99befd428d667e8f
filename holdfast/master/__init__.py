"""The shell of the control plane: thin loops that load, step, save under the term, and perform.

Read `keeper.py` first, then `desk.py`.  May import `core`, `store`, `wire`, `model` and `errors`.
Nothing that must survive is only here.
"""
