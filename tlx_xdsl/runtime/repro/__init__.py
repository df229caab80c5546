"""Reproducers: a folder with a script that fails as a compile, a run in the interpreter, or a launch has failed.

Where a pass, the interpreter or stock Triton fails, the folder has the IR that the step got, and needs the user's files
no more; where the frontend does, copies of them. `docs/profiling.md` says how to use it.
"""

from .arrays import load_array
from .failing import Failing, Failure, find_failure
from .write import write, write_into

__all__ = ["Failing", "Failure", "find_failure", "load_array", "write", "write_into"]
