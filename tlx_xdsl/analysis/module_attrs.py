"""The module attributes by which Triton knows the launch, such as warps and CTAs, and the target."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32
from xdsl.ir import Operation

from tlx_xdsl.dialects.base import module_integer, needs_of, outermost
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.targets import Feature, Target, target_of
from tlx_xdsl.text.diagnostics import error_at

NUM_WARPS = "ttg.num-warps"
NUM_CTAS = "ttg.num-ctas"
TARGET = "ttg.target"
"""The target in Triton's spelling: "cuda:90"."""
MAX_REGISTERS_PER_THREAD = "ttg.maxnreg"
THREADS_PER_WARP = "ttg.threads-per-warp"
CLUSTER_DIMS = tuple(f"ttg.cluster-dim-{axis}" for axis in "xyz")
"""CTAs of a cluster along each axis of the grid, where each has tensors of its own."""


def set_cluster(module: ModuleOp, sizes: Sequence[int]) -> None:
    """Say in the module that its clusters have so many CTAs along x, y and z; nothing when they have one."""
    if prod(sizes) > 1:
        for name, size in zip(CLUSTER_DIMS, sizes, strict=True):
            module.attributes.setdefault(name, IntegerAttr(size, i32))


def cluster_dims(module: ModuleOp) -> tuple[int, int, int] | None:
    """CTAs of a cluster along x, y and z as the module says it; None for one CTA, or where it does not."""
    x, y, z = (module_integer(module, name) or 1 for name in CLUSTER_DIMS)
    return None if x * y * z == 1 else (x, y, z)


def num_warps(module: ModuleOp) -> int:
    """Warps of the kernel outside of partitions.

    Raises CompilationError when the module does not say.
    """
    attribute = module.attributes.get(NUM_WARPS)
    if not isinstance(attribute, IntegerAttr):
        raise error_at(module, f"the module needs the attribute '{NUM_WARPS}'; the pass triton-tlx-fixup sets it")
    return attribute.value.data


def module_target(module: ModuleOp) -> Target | None:
    """The target that a module names, or None where it names none.

    Raises CompilationError for what is no target.
    """
    named = module.attributes.get(TARGET)
    if named is None:
        return None
    text = named.data if isinstance(named, StringAttr) else str(named)
    capability = text.removeprefix("cuda:")
    if capability == text or not capability.isdigit():
        raise error_at(module, f'expected a target such as "cuda:90" in \'{TARGET}\', found "{text}"')
    try:
        return target_of(int(capability))
    except InputError as error:
        raise error_at(module, str(error)) from error


def is_tile_copy(op: Operation) -> bool:
    """Return whether a load, store or reduction through a tensor descriptor is a tile copy by TMA.

    The rules of `numerics/host_arrays.py` apply to these.
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
