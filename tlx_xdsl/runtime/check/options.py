"""Defaults of `tlx check`."""

from __future__ import annotations

from tlx_xdsl.runtime.simulate.options import FRONTEND, TTGIR

SECONDS = 10.0
"""Time for all sizes and orders, by default."""

STAGES = (FRONTEND, TTGIR)
"""What the frontend makes, where lines are closest to the source, and what stock Triton gets."""

MINIMIZE_SECONDS = 2.0
"""Of `tlx minimize-sync`: time for the orders without each operation. All sizes are run once at each stage, whatever
that takes."""

SMALL = "small"
"""In the place of a size's values: those at which rings of buffers go wrong (`check_sizes.small_values`)."""
