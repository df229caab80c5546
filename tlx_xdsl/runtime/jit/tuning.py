"""The decorators that tune: those of Triton's runtime, or ours for the CPU where Triton is not installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if not TYPE_CHECKING and find_spec("triton") is not None:
    from .autotune import Config, autotune, heuristics
else:
    # What stands last is what the reference shows.
    from ..host.autotune import Config, autotune, heuristics

__all__ = ["Config", "autotune", "heuristics"]
