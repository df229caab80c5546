"""Alias of `tlx_xdsl.runtime.jit.autotune`: its name until 2026."""

from tlx_xdsl.runtime.jit.autotune import *  # noqa: F403
