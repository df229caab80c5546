"""Alias of `tlx_xdsl.runtime.launch.tensor_descriptor`: its name until 2026."""

from tlx_xdsl.runtime.launch.tensor_descriptor import *  # noqa: F403
