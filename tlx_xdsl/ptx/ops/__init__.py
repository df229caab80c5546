"""Instructions with effects: what makes a step of each, by its name."""

from __future__ import annotations

from tlx_xdsl.ptx.ops import barriers, control, fences, memory, nothing, warps
from tlx_xdsl.ptx.steps import Builder

BUILDERS: dict[str, Builder] = {
    name: builder
    for module in (barriers, control, fences, memory, nothing, warps)
    for name, builder in module.BUILDERS.items()
}
"""The builders by the first part of the operation code."""
