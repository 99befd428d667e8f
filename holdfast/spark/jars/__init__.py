"""Holdfast's classes that run inside Spark's JVM."""
