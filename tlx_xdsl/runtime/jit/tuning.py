"""The decorators that tune: those of Triton's runtime, or ours for the CPU where Triton is not installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING or find_spec("triton") is None:
    from tlx_xdsl.runtime.cpu.autotune import Config, autotune, heuristics
else:
    from triton import heuristics

    from tlx_xdsl.runtime.jit.autotune import Config, autotune

__all__ = ["Config", "autotune", "heuristics"]
