"""Alias of `tlx_xdsl.runtime.jit.triton_kernel`: its name until 2026."""

from tlx_xdsl.runtime.jit.triton_kernel import *  # noqa: F403
