"""Kernels of the plain language by topic, written for the comparison with stock Triton."""
