"""Kernels of the plain language by topic, which stock's frontend and ours must read alike."""
