"""Kernels over stock Triton's objects, one file per topic."""
