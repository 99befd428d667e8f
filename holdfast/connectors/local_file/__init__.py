"""Files of this machine, as a source and as a sink.

`find.py` lists files, `read.py` and its readers turn them into rows, `write.py` stages rows,
`commit.py` brings staged files into sight.  Read `source.py` and `sink.py` first.
"""
