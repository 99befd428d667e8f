"""JSON in columns: paths into it, its types, and JSON as people write it."""
