"""Holdfast on a Spark cluster that is not in its own process."""
