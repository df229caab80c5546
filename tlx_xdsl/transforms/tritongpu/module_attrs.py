"""The module attributes by which Triton knows the launch: warps, CTAs and target."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32

from tlx_xdsl.text.diagnostics import error_at

NUM_WARPS = "ttg.num-warps"
NUM_CTAS = "ttg.num-ctas"
TARGET = "ttg.target"
MAX_REGISTERS_PER_THREAD = "ttg.maxnreg"
THREADS_PER_WARP = "ttg.threads-per-warp"
CLUSTER_DIMS = tuple(f"ttg.cluster-dim-{axis}" for axis in "xyz")
"""CTAs of a cluster along each axis of the grid, where each has tensors of its own."""


def set_cluster(module: ModuleOp, sizes: Sequence[int]) -> None:
    """Say in the module that its clusters have so many CTAs along x, y and z; nothing when they have one."""
    if prod(sizes) > 1:
        for name, size in zip(CLUSTER_DIMS, sizes, strict=True):
            module.attributes.setdefault(name, IntegerAttr(size, i32))


def num_warps(module: ModuleOp) -> int:
    """Warps of the kernel outside of partitions.

    Raises CompilationError when the module does not say.
    """
    attribute = module.attributes.get(NUM_WARPS)
    if not isinstance(attribute, IntegerAttr):
        raise error_at(module, f"the module needs the attribute '{NUM_WARPS}'; the pass triton-tlx-fixup sets it")
    return attribute.value.data
