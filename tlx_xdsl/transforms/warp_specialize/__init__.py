"""Passes that turn a plain Triton kernel into tasks on warps of their own: one decision a file (`pipeline.py`)."""
