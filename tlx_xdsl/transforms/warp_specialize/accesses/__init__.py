"""Accesses to global memory that TMA can do: boxes of tensors, what is known of their numbers, arguments for them."""
