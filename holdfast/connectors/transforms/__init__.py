"""The transforms that come with Holdfast, one file each.

Read `copy.py` first: it is the shortest.  `columns.py` is what most of them stand on.
"""
