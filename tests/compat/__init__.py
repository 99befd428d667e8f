"""SeaTunnel's own job files, run as its tests run them."""
