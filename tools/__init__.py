"""Tools for whoever changes Holdfast; none of them is in the wheel.  Run as `python -m tools.x`."""
