"""Our own paths, a file for each noun."""
