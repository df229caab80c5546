"""The pipes of a sub-partition of a multiprocessor, and what an instruction takes of them."""

from __future__ import annotations

PIPES = ("fma", "heavy", "alu", "xu", "fp64", "lsu", "tensor", "uniform")
"""The pipes of one sub-partition, in the order of `Work.pipes`."""
