"""Former name of `jit/triton_kernel.py`."""

from tlx_xdsl.runtime.jit.triton_kernel import *  # noqa: F403
