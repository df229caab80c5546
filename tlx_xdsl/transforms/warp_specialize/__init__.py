"""Passes that turn a plain Triton kernel into tasks on warps of their own; `specialize.py` has their order."""
