"""Alias of `tlx_xdsl.runtime.launch.cuda_driver`: its name until 2026."""

from tlx_xdsl.runtime.launch.cuda_driver import *  # noqa: F403
