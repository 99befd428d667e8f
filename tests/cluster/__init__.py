"""Tests of real processes: masters, workers and the command line between them."""
