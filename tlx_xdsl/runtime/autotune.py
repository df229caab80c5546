"""Former name of `jit/autotune.py`."""

from tlx_xdsl.runtime.jit.autotune import *  # noqa: F403
