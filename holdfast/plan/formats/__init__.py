"""Job files in each of their formats, read into one tree."""
