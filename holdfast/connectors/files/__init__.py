"""Files of this machine, as a source and as a sink.

`discovery.py` lists files, `reading.py` and its readers turn them into rows, `writing.py` stages
rows, `committer.py` brings staged files into sight.  Read `source.py` and `writer.py` first.
"""
