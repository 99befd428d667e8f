"""Planted bugs, in the control plane and in stories; each must be caught."""
