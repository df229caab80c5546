"""Alias of `tlx_xdsl.runtime.jit.stand_in_driver`: its name until 2026."""

from tlx_xdsl.runtime.jit.stand_in_driver import *  # noqa: F403
