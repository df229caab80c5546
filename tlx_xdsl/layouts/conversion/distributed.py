"""Register layouts: which element is in which register of which thread.

Inputs are `register`, `lane`, `warp` and `block`, outputs `dim0`, `dim1`, ... of the whole tensor.
"""

from __future__ import annotations

from functools import lru_cache

from tlx_xdsl.errors import InputError

from ..encodings import (
    BlockedLayout,
    DistributedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    GenericLinearLayout,
    Ints,
    NvidiaMmaLayout,
    SliceLayout,
)
from ..linear_layout import LinearLayout
from .mma import mma_operand_to_linear, mma_to_linear, without_k
from .tiling import (
    BLOCK,
    LANE,
    NEWEST,
    REDUNDANT_REGISTERS_UNTIL,
    REGISTER,
    WARP,
    Version,
    check_powers_of_two,
    clip,
    cover,
    dim_names,
    dims_by_appearance,
    identity_nd,
    repeat,
)


@lru_cache(maxsize=4096)
def distributed_to_linear(layout: DistributedLayout, shape: Ints, version: Version = NEWEST) -> LinearLayout:
    """The linear layout of a tensor of `shape` that is held in registers as `layout` says to that Triton version.

    Raises ValueError if the layout does not fit the tensor's rank, or a size is no power of two.
    """
    check_powers_of_two(shape)
    if (rank := rank_of(layout)) is not None and rank != len(shape):
        raise InputError(f"a '{layout.mnemonic}' layout of rank {rank}, used for shape {shape}")
    match layout:
        case BlockedLayout():
            return _blocked(layout, shape, version)
        case SliceLayout():
            return _slice(layout, shape, version)
        case NvidiaMmaLayout():
            return mma_to_linear(layout, shape)
        case DotOperandLayout(parent=NvidiaMmaLayout() as parent):
            return mma_operand_to_linear(layout, parent, shape, version)
        case DotOperandLayout(parent=BlockedLayout() as parent):
            return _blocked_operand(layout, parent, shape)
        case DistributedLinearLayout() | GenericLinearLayout():
            return _spelled_out(layout, shape)
        case _:
            raise InputError(f"an operand of a dot cannot have the parent layout '{layout.parent.mnemonic}'")


def rank_of(layout: DistributedLayout) -> int | None:
    """The number of dimensions of the tensors that `layout` is for; None where it has no bases to derive it from."""
    match layout:
        case BlockedLayout():
            return len(layout.order)
        case NvidiaMmaLayout():
            return len(layout.warps_per_cta)
        case DotOperandLayout():
            return rank_of(layout.parent)
        case SliceLayout():
            rank = rank_of(layout.parent)
            return None if rank is None else rank - 1
        case DistributedLinearLayout() | GenericLinearLayout():
            bases = (*layout.register, *layout.lane, *layout.warp, *layout.block)
            return len(bases[0]) if bases else None


def _blocked(layout: BlockedLayout, shape: Ints, version: Version) -> LinearLayout:
    """Thread tiles, tiled by threads, tiled by warps; registers that would only hold copies do not exist."""
    drop = None if version < REDUNDANT_REGISTERS_UNTIL else REGISTER
    tile = _blocked_tile(layout, layout.size_per_thread)
    return cover(tile, layout.cga_layout, shape, REGISTER, layout.order, drop)


def _blocked_operand(layout: DotOperandLayout, parent: BlockedLayout, shape: Ints) -> LinearLayout:
    """An operand of a dot without tensor cores: every thread holds all of K for its rows of A or columns of B."""
    k_dim = len(shape) - 1 if layout.op_idx == 0 else len(shape) - 2
    size_per_thread = tuple(shape[dim] if dim == k_dim else size for dim, size in enumerate(parent.size_per_thread))
    tile = _blocked_tile(parent, size_per_thread, broadcast=(k_dim,))
    return cover(tile, without_k(parent.cga_layout, k_dim), shape, REGISTER, parent.order)


def _blocked_tile(layout: BlockedLayout, size_per_thread: Ints, broadcast: Ints = ()) -> LinearLayout:
    """Return what the warps of a CTA hold of one tile; threads along a `broadcast` dimension hold copies."""
    return (
        identity_nd(REGISTER, size_per_thread, layout.order)
        * identity_nd(LANE, layout.threads_per_warp, layout.order, broadcast)
        * identity_nd(WARP, layout.warps_per_cta, layout.order, broadcast)
    )


def _slice(layout: SliceLayout, shape: Ints, version: Version) -> LinearLayout:
    """The parent of a tensor of size 1 in the removed dimension; registers then hold every element once."""
    parent_shape = (*shape[: layout.dim], 1, *shape[layout.dim :])
    parent = distributed_to_linear(layout.parent, parent_shape, version)
    kept = [name for dim, name in enumerate(dim_names(len(parent_shape))) if dim != layout.dim]
    sliced = parent.sublayout(parent.in_names, kept)
    return LinearLayout(sliced.ins, tuple(zip(dim_names(len(shape)), shape, strict=True))).without_zero_bases(REGISTER)


def _spelled_out(layout: DistributedLinearLayout | GenericLinearLayout, shape: Ints) -> LinearLayout:
    """The bases as they stand; registers repeat them first along the dimension that the first register basis moves."""
    bases = {REGISTER: layout.register, LANE: layout.lane, WARP: layout.warp, BLOCK: layout.block}
    linear = LinearLayout.from_bases(bases, dim_names(len(shape)))
    order = dims_by_appearance(layout.register, len(shape))
    fitted = clip(repeat(linear, shape, REGISTER, order), shape, drop=REGISTER)
    if not fitted.is_surjective():
        raise InputError(f"a '{layout.mnemonic}' layout leaves elements of shape {shape} without a holder")
    return fitted
