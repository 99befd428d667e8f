"""The control plane in the simulator: one seed is one history."""
