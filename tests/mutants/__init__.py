"""Bugs planted in the code that no simulator runs, each with the tests that must fail of it."""
