"""The places of a result's elements, where an operation moves none: each thread keeps what it holds.

A layout may be spelled in several ways, so what is compared is where the elements are, not the text. Each function
`fault_of_...` returns a sentence for an operation whose result is elsewhere, or None.
"""

from __future__ import annotations

from functools import lru_cache

from .conversion.distributed import distributed_to_linear
from .conversion.tiling import BLOCK, LANE, REGISTER, WARP
from .distributed import reshaped_layout, transposed_layout
from .encodings import Bases, DistributedLayout, Ints, SliceLayout

_INPUTS = (REGISTER, LANE, WARP, BLOCK)


@lru_cache(maxsize=4096)
def places(layout: DistributedLayout, shape: Ints) -> tuple[Bases, ...]:
    """The bases of registers, lanes, warps and CTAs, without the registers that hold copies.

    Raises ValueError when the layout does not fit the shape.
    """
    bases = distributed_to_linear(layout, shape).without_zero_bases(REGISTER).bases
    return tuple(tuple(bases.get(name, ())) for name in _INPUTS)


@lru_cache(maxsize=4096)
def fault_of_transpose(source: DistributedLayout, result: DistributedLayout, shape: Ints, order: Ints) -> str | None:
    """The result of a transposition of a tensor of `shape`."""
    target = tuple(shape[dim] for dim in order)
    moved = places(transposed_layout(source, shape, order), target)
    return None if moved == places(result, target) else "the layout of the result is not that of the source, transposed"


@lru_cache(maxsize=4096)
def fault_of_reshape(source: DistributedLayout, result: DistributedLayout, shape: Ints, target: Ints) -> str | None:
    """The result of a reshape of a tensor of `shape` to `target`."""
    moved = places(reshaped_layout(source, shape, target), target)
    return None if moved == places(result, target) else "the layout of the result is not that of the source, reshaped"


@lru_cache(maxsize=4096)
def fault_of_slice(whole: DistributedLayout, part: DistributedLayout, shape: Ints, axis: int) -> str | None:
    """A tensor and one of `shape` that lacks its dimension `axis`."""
    if places(SliceLayout(axis, whole), shape) == places(part, shape):
        return None
    return f"the layout without dimension {axis} must be a slice of the one with it"


@lru_cache(maxsize=4096)
def fault_of_halves(half: DistributedLayout, whole: DistributedLayout, shape: Ints) -> str | None:
    """A tensor of `shape`, whose last dimension is 2, and its halves along that."""
    registers, *others = places(whole, shape)
    last = [basis for basis in registers if basis[-1]]
    if last != [(*(0 for _ in shape[1:]), 1)] or any(basis[-1] for bases in others for basis in bases):
        return "each thread must hold both elements of a pair, in registers"
    rest = [basis for basis in registers if not basis[-1]]
    halves = tuple(tuple(basis[:-1] for basis in bases) for bases in (rest, *others))
    if halves == places(half, shape[:-1]):
        return None
    return "the layout of a half is not that of the pairs without the last dimension"


@lru_cache(maxsize=4096)
def fault_of_cat(source: DistributedLayout, result: DistributedLayout, shape: Ints, target: Ints) -> str | None:
    """The result, of shape `target`, with the elements of two tensors of `shape`."""
    have, need = 2 * unique_elements(source, shape), unique_elements(result, target)
    return None if have == need else f"the result has {need} elements per thread, the operands provide {have}"


@lru_cache(maxsize=4096)
def fault_of_unpacking(source: DistributedLayout, result: DistributedLayout, shape: Ints, axis: int) -> str | None:
    """The result of a tensor of `shape` with pairs of elements along `axis`; the lower half of a pair comes first."""
    target = tuple(2 * size if dim == axis else size for dim, size in enumerate(shape))
    registers, *others = places(source, shape)

    def doubled(bases: Bases) -> Bases:
        return tuple(tuple(2 * step if dim == axis else step for dim, step in enumerate(basis)) for basis in bases)

    pair = tuple(int(dim == axis) for dim in range(len(shape)))
    expected = ((pair, *doubled(registers)), *map(doubled, others))
    if places(result, target) == expected:
        return None
    return "the layout of the result is not that of the source, with both elements of a pair in one thread"


def unique_elements(layout: DistributedLayout, shape: Ints) -> int:
    """The elements that a thread holds, each counted once."""
    linear = distributed_to_linear(layout, shape)
    registers = len(linear.packed_bases(REGISTER))
    return 1 << (registers - linear.free_variables()[REGISTER].bit_count())
