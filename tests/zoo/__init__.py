"""Kernels with a bug of synchronisation or of bounds, each beside its clean twin, and what a check must say of them."""
