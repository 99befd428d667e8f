"""Every format's source and sink beside readers and writers that are not ours: `make formats`."""
