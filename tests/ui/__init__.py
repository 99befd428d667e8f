"""The pages of a master in a real Chromium."""
