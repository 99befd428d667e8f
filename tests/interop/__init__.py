"""Reference readers and writers of lake tables, beside ours; `make interop` runs these tests."""
