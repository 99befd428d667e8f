"""Benchmarks: each a ratio, in one run, against what a user would use instead."""
