"""Tests of the shell around Spark."""
