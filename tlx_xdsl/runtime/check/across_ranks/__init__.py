"""Proof of protocols across ranks, for any number of launches: see `prove`."""
