"""One file for each format: how its rows are read and written."""
