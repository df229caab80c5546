"""Kernels in Gluon, which stock Triton compiles to TTGIR."""
