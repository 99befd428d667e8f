"""The command line, one file for each group of verbs.  Read `main.py` first."""
