"""Pure nouns: frozen dataclasses without I/O.  May import `errors` only.  Read `tree.py` first."""
