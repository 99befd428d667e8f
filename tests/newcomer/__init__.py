"""What a newcomer types: `make newcomer`."""
