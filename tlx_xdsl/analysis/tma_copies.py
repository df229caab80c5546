"""Whether an operation is a tile copy by TMA, to which the rules of `numerics/host_arrays.py` apply."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.dialects.base.operation import needs_of, outermost
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.targets import Feature

from .module_target import module_target


def is_tile_copy(op: Operation) -> bool:
    """Return whether a load, store or reduction through a tensor descriptor is a tile copy by TMA.

    Without TMA stock Triton's own passes make pointers of the descriptors of `tt`. So of its operations this is known
    where the module names a target.
    """
    if Feature.TMA not in needs_of(op):
        return False
    if op.dialect_name() != "tt":
        return True
    module = outermost(op)
    try:
        target = module_target(module) if isinstance(module, ModuleOp) else None
    except CompilationError:
        # It is for a GPU that is none of ours.
        return False
    return target is not None and target.has(Feature.TMA)
