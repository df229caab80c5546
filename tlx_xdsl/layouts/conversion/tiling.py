"""Shared parts of the conversions: tiles, and how a tile meets the shape of a tensor.

A tensor that is larger than its layout is tiled by it: registers (or offsets) repeat. A tensor that is smaller is
broadcast: the bases that lead outside become zero, so that several holders have the same element.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from tlx_xdsl.errors import InputError

from ..encodings import Bases, Ints
from ..linear_layout import LinearLayout, log2

REGISTER, LANE, WARP, BLOCK = "register", "lane", "warp", "block"
"""Inputs of register layouts: element of a thread, thread of a warp, warp of a CTA, CTA of a cluster."""

OFFSET = "offset"
"""Input of shared-memory layouts, beside `block`: the element's place in the buffer, counted in elements."""

ROW, COL = "row", "col"
"""Inputs of tensor-memory layouts, beside `block`: the lane, and the element's place in it, counted in elements."""


# Versions of Triton that read the same layout differently; found by asking each for random layouts.
#
# | layout | until | how it was read | how it is read since |
# |---|---|---|---|
# | `blocked`, a thread's tile larger than the tensor | 3.9 | all registers stay, some hold copies | they do not exist |
# | `nvmma_shared`, transposed, without swizzle | 3.8 | row-major all the same | column-major |
# | `tensor_memory_encoding`, twoCTAs with 64 rows | 3.8 | all columns are halved | columns of a block are halved |
# | `dot_op` of mma.sync with 8 rows (f64) | 3.8 | as that of 16 rows and twice the K | as mma.m8n8k4 has it |
Version: TypeAlias = tuple[int, int]
"""Major and minor version of Triton."""

NEWEST: Version = (3, 9)
"""The version whose reading counts unless another is named."""

REDUNDANT_REGISTERS_UNTIL: Version = (3, 9)
UNSWIZZLED_IS_ROW_MAJOR_UNTIL: Version = (3, 8)
PAIR_HALVES_ALL_COLUMNS_UNTIL: Version = (3, 8)
F64_OPERANDS_SINCE: Version = (3, 8)


def dim_names(rank: int) -> tuple[str, ...]:
    """The outputs of every layout of a tensor of `rank` dimensions."""
    return tuple(f"dim{dim}" for dim in range(rank))


def identity_nd(
    in_name: str, sizes: Sequence[int], order: Iterable[int], broadcast: Collection[int] = ()
) -> LinearLayout:
    """Indices dealt to dimensions of `sizes`, fastest first as `order` says; none of them moves along `broadcast`."""
    names = dim_names(len(sizes))
    result = LinearLayout.empty()
    for dim in order:
        make = LinearLayout.zeros_1d if dim in broadcast else LinearLayout.identity_1d
        result *= make(sizes[dim], in_name, names[dim])
    return result.transpose_outs(names)


def repeat(layout: LinearLayout, shape: Ints, in_name: str, order: Iterable[int]) -> LinearLayout:
    """`layout` as a tile of `shape`, repeated along `in_name`, the dimensions of `order` one after the other."""
    names = layout.out_names
    missing = tuple(max(1, size // layout.out_sizes[name]) for name, size in zip(names, shape, strict=True))
    return layout * identity_nd(in_name, missing, order)


def clip(layout: LinearLayout, shape: Ints, drop: str | None = None) -> LinearLayout:
    """`layout` kept inside `shape`: a coordinate of a basis that lies outside becomes zero.

    Bases of the input `drop` that become zero are dropped, unlike those that were zero before: the copies that they
    would make are not asked for.
    """
    dims = tuple((name, min(size, layout.out_sizes[name])) for name, size in zip(layout.out_names, shape, strict=True))
    bases: dict[str, list[Ints]] = {}
    for in_name in layout.in_names:
        bases[in_name] = []
        for basis in layout.bases_of(in_name):
            clipped = tuple(value if value < size else 0 for value, (_, size) in zip(basis, dims, strict=True))
            if in_name != drop or any(clipped) or not any(basis):
                bases[in_name].append(clipped)
    return LinearLayout.from_bases(bases, dict(dims))


def cluster(cga_layout: Bases, shape: Ints) -> LinearLayout:
    """Return how the CTAs of a cluster share a tensor of `shape`, counted in tiles of one CTA."""
    return clip(LinearLayout.from_bases({BLOCK: cga_layout}, dim_names(len(shape))), shape)


def shape_per_cta(cga_layout: Bases, shape: Ints) -> Ints:
    """The part of a tensor of `shape` that one CTA holds."""
    split = cluster(cga_layout, shape).out_sizes
    return tuple(size // split[name] for name, size in zip(dim_names(len(shape)), shape, strict=True))


def cover(
    tile: LinearLayout, cga_layout: Bases, shape: Ints, in_name: str, order: Iterable[int], drop: str | None = None
) -> LinearLayout:
    """The layout of a tensor of `shape`: `tile` fitted to the part of one CTA, and that continued over the cluster.

    `in_name` and `order` are those of `repeat`, `drop` is that of `clip`.
    """
    part = shape_per_cta(cga_layout, shape)
    return clip(repeat(tile, part, in_name, order), part, drop) * cluster(cga_layout, shape)


def check_shape(layout: LinearLayout, shape: Ints, mnemonic: str) -> LinearLayout:
    """`layout`, after checking that it spans exactly `shape`.

    Raises ValueError otherwise.
    """
    spanned = tuple(layout.out_sizes.values())
    if spanned != shape:
        raise InputError(f"'{mnemonic}' spells out a layout of shape {spanned}, used for shape {shape}")
    return layout


def check_powers_of_two(shape: Ints) -> None:
    """Raise ValueError if a size of `shape` is no power of two."""
    for size in shape:
        log2(size)


def dims_by_appearance(bases: Bases, rank: int) -> Ints:
    """Dimensions in the order in which `bases` first move along them, then the others, last one first."""
    moved = [dim for basis in bases for dim, value in enumerate(basis) if value]
    return tuple(dict.fromkeys([*moved, *reversed(range(rank))]))
