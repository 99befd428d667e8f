"""Real processes: what a user types, and what comes of it."""
