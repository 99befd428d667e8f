"""From the text of a job file to a checked `Job`: pure, no I/O, no clock.

`load.py` first (which format, variables), then `check.py` (options and wiring), `split.py`
(pipelines and tasks), `draw.py` (what `holdfast plan` shows).  May import `connect` and `model`.
"""
