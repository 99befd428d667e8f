"""Where bytes are: folders of this machine, and places that tables name."""
