"""Calls of kernels: operands, launches, plans that repeat, memory for each stream."""
