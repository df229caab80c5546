"""The Python side of a kernel: its source, its signature, the names that it uses, and what was probably meant."""
