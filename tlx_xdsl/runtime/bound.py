"""Alias of `tlx_xdsl.runtime.jit.bound`: its name until 2026."""

from tlx_xdsl.runtime.jit.bound import *  # noqa: F403
