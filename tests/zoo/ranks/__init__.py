"""Kernels on several GPUs with a mistake in their protocol, each beside its clean twin."""
