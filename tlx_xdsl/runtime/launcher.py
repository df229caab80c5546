"""Alias of `tlx_xdsl.runtime.launch.launcher`: its name until 2026."""

from tlx_xdsl.runtime.launch.launcher import *  # noqa: F403
