"""Decompiler of IR to Python that a reader of kernels knows: `tl` and `tlx` calls, loops, branches and tasks.

`module.py` prints a file with all functions of a module, `function.py` one function; `control.py` does control flow,
and the other files what the operations of a topic are in the language, one function for each operation.
"""
