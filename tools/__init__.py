"""Tools for whoever changes Holdfast; none is in the wheel.  Run one as `python -m tools.NAME`."""
