"""Runs of a kernel on the CPU, in the interpreter or as final PTX."""
