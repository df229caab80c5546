"""Analyses of TTL kernels, which change nothing."""
