"""Former name of `launch/cuda_driver.py`."""

from tlx_xdsl.runtime.launch.cuda_driver import *  # noqa: F403
