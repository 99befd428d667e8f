"""SeaTunnel's REST v2: its paths, its names, its types."""
