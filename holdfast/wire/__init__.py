"""What masters and workers say to each other, and how it looks on the wire.

Read `messages.py` first.  May import `core`, `model` and `errors`.
"""
