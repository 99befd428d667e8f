"""Public helpers for connector authors: the conformance kit.  Nobody in Holdfast imports it."""
