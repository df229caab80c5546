"""Choosing register layouts: by default, for the tensor cores and their memory, and after a change of shape."""

from __future__ import annotations

from tlx_xdsl.errors import InputError

from .conversion.distributed import distributed_to_linear
from .conversion.tensor_memory import tensor_memory_to_linear
from .conversion.tiling import BLOCK, COL, LANE, REGISTER, ROW, WARP, dim_names
from .encodings import (
    BlockedLayout,
    DistributedLayout,
    DistributedLinearLayout,
    Ints,
    NvidiaMmaLayout,
    TmemLayout,
)
from .linear_layout import LinearLayout

WARP_SIZE = 32
"""Threads of a warp, on every NVIDIA GPU."""

WARPS_PER_WARP_GROUP = 4
"""wgmma is issued by four consecutive warps (PTX ISA, "Asynchronous warpgroup level matrix instructions")."""


def _fill(budget: int, shape: Ints, order: Ints) -> Ints:
    """Deal `budget` (a power of two) to the dimensions of `shape`, in the order given (fastest first).

    What no dimension needs goes to the slowest one: the product is always `budget`.
    """
    dealt = [1] * len(shape)
    for dim in order:
        dealt[dim] = min(budget, shape[dim])
        budget //= dealt[dim]
    dealt[order[-1]] *= budget
    return tuple(dealt)


def blocked_layout(shape: Ints, size_per_thread: Ints, order: Ints, num_warps: int) -> BlockedLayout:
    """The layout of a tensor of `shape` in which a thread has `size_per_thread` elements side by side.

    The threads of a warp, and then the warps, lie side by side along the dimensions in `order`, fastest first. All
    sizes are in elements, and powers of two.
    """
    left = tuple(max(1, size // held) for size, held in zip(shape, size_per_thread, strict=True))
    threads = _fill(WARP_SIZE, left, order)
    left = tuple(max(1, size // lanes) for size, lanes in zip(left, threads, strict=True))
    return BlockedLayout(size_per_thread, threads, _fill(num_warps, left, order), order)


def default_blocked_layout(shape: Ints, num_warps: int) -> BlockedLayout:
    """The layout of a tensor that nothing requires a layout of: one element per thread, the last dimension fastest.

    `shape` is in elements (powers of two); `num_warps` is that of the region that holds the value.
    Stock Triton picks the same layout (`getDefaultBlockedEncoding`), so that its own passes find the form they expect.
    """
    return blocked_layout(shape, (1,) * len(shape), tuple(reversed(range(len(shape)))), num_warps)


def wgmma_accumulator_layout(shape: Ints, operand_bits: int, num_warps: int) -> NvidiaMmaLayout:
    """The layout of a wgmma accumulator of `shape` = (M, N) elements.

    `operand_bits` is the width of an element of A and B; one instruction covers 256 bits of K. N of the instruction
    is the largest multiple of 8 up to 256 that divides N (PTX ISA, "wgmma.mma_async", the shapes m64nNkK).
    Every warp group owns whole 64-row slabs, so warps tile M only.

    Raises ValueError when no wgmma instruction fits.
    """
    m, n = shape
    if num_warps % WARPS_PER_WARP_GROUP:
        raise InputError(f"wgmma needs a multiple of {WARPS_PER_WARP_GROUP} warps, found num_warps = {num_warps}")
    if m % 64:
        raise InputError(f"wgmma needs M to be a multiple of 64, found an accumulator of {m}x{n}")
    instr_n = next((width for width in range(min(n, 256) // 8 * 8, 0, -8) if n % width == 0), 0)
    if not instr_n:
        raise InputError(f"wgmma needs N to be a multiple of 8, found an accumulator of {m}x{n}")
    return NvidiaMmaLayout(3, 0, (num_warps, 1), (), (16, instr_n, 256 // operand_bits))


def reshaped_layout(layout: DistributedLayout, shape: Ints, target: Ints) -> DistributedLinearLayout:
    """The layout of a tensor of `shape` with `layout` after a reshape to `target`, in which no element moves.

    Raises ValueError when the layout does not fit the shape.
    """
    linear = distributed_to_linear(layout, shape)
    # Row-major: the last dimension has the lowest bits.
    backward = linear.transpose_outs(tuple(reversed(dim_names(len(shape)))))
    names = tuple(reversed(tuple(zip(dim_names(len(target)), target, strict=True))))
    return spelled_out(backward.reshape_outs(names).transpose_outs(dim_names(len(target))))


def transposed_layout(layout: DistributedLayout, shape: Ints, order: Ints) -> DistributedLinearLayout:
    """The layout of a tensor of `shape` with `layout` after a transposition, in which no element moves.

    Dimension i of the result is dimension `order[i]` of the source.
    Raises ValueError when the layout does not fit the shape.
    """
    names = dim_names(len(shape))
    moved = distributed_to_linear(layout, shape).transpose_outs(tuple(names[dim] for dim in order))
    return spelled_out(
        LinearLayout(moved.ins, tuple((name, shape[dim]) for name, dim in zip(names, order, strict=True)))
    )


def joined_layout(layout: DistributedLayout, shape: Ints) -> DistributedLinearLayout:
    """The layout of pairs, in a new last dimension of 2, of the elements of two tensors of `shape` with `layout`.

    Every thread holds the two elements of a pair in registers that follow each other.
    Raises ValueError when the layout does not fit the shape.
    """
    half = spelled_out(distributed_to_linear(layout, shape))
    pair = (*(0 for _ in shape), 1)
    wider = {
        name: tuple((*basis, 0) for basis in getattr(half, name)) for name in ("register", "lane", "warp", "block")
    }
    return DistributedLinearLayout((pair, *wider["register"]), wider["lane"], wider["warp"], wider["block"])


def split_layout(layout: DistributedLayout, shape: Ints) -> DistributedLinearLayout | None:
    """The layout of one half of a tensor of `shape`, along its last dimension of 2, in which no element moves.

    None where a thread does not hold both elements of its pairs.
    Raises ValueError when the layout does not fit the shape.
    """
    whole = spelled_out(distributed_to_linear(layout, shape))
    pair = (*(0 for _ in shape[1:]), 1)
    held = (*whole.register, *whole.lane, *whole.warp, *whole.block)
    if whole.register.count(pair) != 1 or any(basis[-1] for basis in held if basis != pair):
        return None
    register = tuple(basis for basis in whole.register if basis != pair)
    halves = (tuple(basis[:-1] for basis in bases) for bases in (register, whole.lane, whole.warp, whole.block))
    return DistributedLinearLayout(*halves)


def paired_layout(layout: DistributedLayout, shape: Ints, axis: int) -> DistributedLinearLayout | None:
    """The layout of the pairs of neighbours along `axis` of a tensor of `shape`, in which no element moves.

    None where the two of a pair are not in registers of one thread that follow each other.
    Raises ValueError when the layout does not fit the shape.
    """
    whole = spelled_out(distributed_to_linear(layout, shape).without_zero_bases(REGISTER))
    if whole.register[:1] != (tuple(int(dim == axis) for dim in range(len(shape))),):
        return None
    halves = (
        tuple(tuple(step // 2 if dim == axis else step for dim, step in enumerate(basis)) for basis in bases)
        for bases in (whole.register[1:], whole.lane, whole.warp, whole.block)
    )
    return DistributedLinearLayout(*halves)


def spelled_out(linear: LinearLayout) -> DistributedLinearLayout:
    """A linear layout of registers, lanes, warps and blocks as the layout of a tensor."""
    bases = linear.bases
    return DistributedLinearLayout(*(tuple(bases.get(name, ())) for name in (REGISTER, LANE, WARP, BLOCK)))


def tensor_memory_register_layout(layout: TmemLayout, shape: Ints, num_warps: int) -> DistributedLayout:
    """The layout in which `num_warps` warps load and store a buffer of `shape` in tensor memory with `layout`.

    Warp w of a warp group reaches lanes 32 w to 32 w + 31, one in each thread (PTX ISA, "tcgen05.ld", shape .32x32b);
    more than one warp group share out the columns.
    Raises ValueError unless whole warp groups run it, and where the columns cannot be shared.
    """
    if num_warps % WARPS_PER_WARP_GROUP:
        raise InputError(
            f"tensor memory is read and written by whole warp groups of {WARPS_PER_WARP_GROUP} warps, {num_warps} run "
            "this code"
        )
    bases = tensor_memory_to_linear(layout, shape).bases
    columns = [basis for basis in bases[COL] if any(basis)]
    rows = bases[ROW]
    more = num_warps.bit_length() - WARPS_PER_WARP_GROUP.bit_length()
    if more > len(columns):
        raise InputError(f"{num_warps} warps cannot share the columns of a buffer of shape {list(shape)}")
    register, shared = columns[: len(columns) - more], columns[len(columns) - more :]
    return DistributedLinearLayout(tuple(register), tuple(rows[:5]), (*rows[5:7], *shared), ())
