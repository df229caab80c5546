"""Proof that the tasks of a thread block synchronise, for all trip counts of their loops: see `prove`."""
