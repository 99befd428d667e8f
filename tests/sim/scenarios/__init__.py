"""Every fault window as a named scenario, played in simulation.

`windows.py` lists the windows; the modules named after a group hold its scenarios; `scene.py` has
the words they are written in; `run.py` plays one.  A scenario passes only if its window was hit,
no invariant was violated, and what it claims holds.
"""
