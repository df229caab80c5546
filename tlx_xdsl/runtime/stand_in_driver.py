"""Former name of `jit/stand_in_driver.py`."""

from tlx_xdsl.runtime.jit.stand_in_driver import *  # noqa: F403
