"""From linalg on tensors to linalg on memory with a place in an arena."""

from __future__ import annotations

from xdsl.passes import ModulePass

from .bufferize import BufferizePass
from .fuse_elementwise import FuseElementwisePass
from .plan_arena import PlanArenaPass


def bufferize_pipeline() -> tuple[ModulePass, ...]:
    """The passes that take the tensors out of a module in linalg, in order."""
    return FuseElementwisePass(), BufferizePass(), PlanArenaPass()
