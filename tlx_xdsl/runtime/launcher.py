"""Former name of `launch/launcher.py`."""

from tlx_xdsl.runtime.launch.launcher import *  # noqa: F403
