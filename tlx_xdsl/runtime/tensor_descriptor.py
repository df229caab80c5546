"""Former name of `launch/tensor_descriptor.py`."""

from tlx_xdsl.runtime.launch.tensor_descriptor import *  # noqa: F403
