"""Former name of `jit/bound.py`."""

from tlx_xdsl.runtime.jit.bound import *  # noqa: F403
