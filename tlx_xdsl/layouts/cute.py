"""Layouts in CuTe's notation: `Shape:Stride`, and `Swizzle<B,M,S> o Shape:Stride` in shared memory.

A mode `shape:stride` maps a coordinate below `shape` to `coordinate * stride`; a tuple of modes maps a tuple of
coordinates to the sum, and an integer is split into coordinates, the first mode fastest (CUTLASS documentation, "CuTe
Layouts"). `Swizzle<B,M,S>` XORs the bits M + S to M + S + B - 1 of an offset into the bits M to M + B - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TypeAlias

from .conversion import to_linear_layout
from .conversion.shared import buffer_rank
from .conversion.tiling import BLOCK, LANE, OFFSET, REGISTER, WARP
from .encodings import (
    DistributedLayout,
    Ints,
    Layout,
    PaddedSharedLayout,
    SharedLayout,
)
from .linear_layout import LinearLayout, log2

Nested: TypeAlias = "int | tuple[Nested, ...]"
"""An integer, or a tuple of nested integers."""

Mode: TypeAlias = tuple[int, int]
"""Size and stride."""


@dataclass(frozen=True, slots=True)
class Swizzle:
    """CuTe's `Swizzle<bits, base, shift>`."""

    bits: int
    base: int
    shift: int

    def __call__(self, offset: int) -> int:
        """The swizzled offset."""
        mask = (1 << self.bits) - 1
        return offset ^ ((offset >> (self.base + self.shift) & mask) << self.base)

    def __str__(self) -> str:
        """Spell it as CuTe does."""
        return f"Swizzle<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True, slots=True)
class CuteLayout:
    """`Shape:Stride`, maybe after a swizzle."""

    shape: Nested
    stride: Nested
    swizzle: Swizzle | None = None

    def __str__(self) -> str:
        """Spell it as CuTe does, with `_` before static integers: `Swizzle<3,3,3> o (_8,_64):(_64,_1)`."""
        prefix = "" if self.swizzle is None else f"{self.swizzle} o "
        return f"{prefix}{_spelled(self.shape)}:{_spelled(self.stride)}"


def _spelled(value: Nested) -> str:
    return f"_{value}" if isinstance(value, int) else f"({','.join(map(_spelled, value))})"


@lru_cache(maxsize=4096)
def cute_layout(layout: Layout, shape: Ints) -> CuteLayout | None:
    """The layout of a tensor or buffer of `shape` in CuTe's terms; None where it has no such form.

    Of registers it is a function of thread and value to the number of the element in the row-major tensor: what
    `tlx.layout` takes. Of shared memory it is a function of the element's coordinates to its offset, in elements.
    Padded layouts, layouts of tensor memory and tensors that several CTAs share have no such form.
    Raises ValueError if the layout does not fit the shape.
    """
    if isinstance(layout, DistributedLayout):
        return _of_registers(to_linear_layout(layout, shape), shape)
    if isinstance(layout, SharedLayout) and not isinstance(layout, PaddedSharedLayout):
        return _of_shared(layout, shape)
    return None


def _of_registers(linear: LinearLayout, shape: Ints) -> CuteLayout | None:
    if linear.in_sizes[BLOCK] > 1:
        return None
    names = {name: [_row_major(basis, shape) for basis in linear.bases_of(name)] for name in (REGISTER, LANE, WARP)}
    steps = [step for found in names.values() for step in found]
    if not _carry_free(steps):
        return None
    # No mode has both lanes and warps, as in Meta's.
    threads, values = _merged(names[LANE]) + _merged(names[WARP]), _merged(names[REGISTER])
    (thread_sizes, thread_steps), (value_sizes, value_steps) = _grouped(threads), _grouped(values)
    return CuteLayout((thread_sizes, value_sizes), (thread_steps, value_steps))


def _row_major(coordinates: Ints, shape: Ints) -> int:
    number = 0
    for coordinate, size in zip(coordinates, shape, strict=True):
        number = number * size + coordinate
    return number


def _carry_free(steps: list[int]) -> bool:
    """Return whether the sum of any of these numbers is their XOR."""
    return sum(step.bit_count() for step in steps) == sum(steps).bit_count()


def _of_shared(layout: SharedLayout, shape: Ints) -> CuteLayout | None:
    rank = buffer_rank(layout)
    tile = shape[len(shape) - rank :]
    linear = to_linear_layout(layout, tile)
    if linear.in_sizes[BLOCK] > 1 or not linear.is_injective():
        return None
    inverse = linear.right_inverse()
    offsets = [
        [place[0] for place in inverse.sublayout((name,), (OFFSET,)).bases_of(name)] for name in inverse.in_names
    ]
    for swizzle in _swizzles(log2(linear.in_sizes[OFFSET])):
        # A swizzle is its own inverse only where source and target bits do not overlap, which B <= S makes sure of.
        plain = [[offset if swizzle is None else swizzle(offset) for offset in dim] for dim in offsets]
        if all(offset.bit_count() == 1 for dim in plain for offset in dim):
            dims = [_modes(dim) for dim in plain]
            # Tiles of a buffer that has more of them follow each other.
            for tiles in shape[: len(shape) - rank]:
                dims.insert(0, (tiles, linear.in_sizes[OFFSET]))
            if len(dims) == 1:
                return CuteLayout(*dims[0], swizzle)
            return CuteLayout(tuple(size for size, _ in dims), tuple(step for _, step in dims), swizzle)
    return None


def _swizzles(bits: int) -> list[Swizzle | None]:
    """Return None, then every swizzle of an offset of so many bits, those that move fewest bits first."""
    sizes = product(range(1, bits), range(bits), range(1, bits))
    return [None, *(Swizzle(b, m, s) for b, m, s in sizes if b <= s and m + s + b <= bits)]


def _modes(steps: list[int]) -> tuple[Nested, Nested]:
    """Shape and stride of an index whose bits move by `steps`."""
    return _grouped(_merged(steps))


def _merged(steps: list[int]) -> list[Mode]:
    """The modes of an index whose bits move by `steps`; bits that double the step before them are one mode."""
    modes: list[Mode] = []
    for step in steps:
        if modes and step == modes[-1][0] * modes[-1][1]:
            modes[-1] = (2 * modes[-1][0], modes[-1][1])
        else:
            modes.append((2, step))
    return modes


def _grouped(modes: list[Mode]) -> tuple[Nested, Nested]:
    if not modes:
        return 1, 0
    if len(modes) == 1:
        return modes[0]
    return tuple(size for size, _ in modes), tuple(step for _, step in modes)


# --- in words -------------------------------------------------------------------------------------------------------


def describe_layout(layout: Layout, shape: Ints) -> list[str]:
    """The layout as `cute: Shape:Stride`, or where that does not exist line by line as the bases of its linear layout.

    Raises ValueError if the layout does not fit the shape.
    """
    found = cute_layout(layout, shape)
    if found is not None:
        return [f"cute: {found}"]
    tile = shape
    if isinstance(layout, SharedLayout):
        tile = shape[len(shape) - buffer_rank(layout) :]
    elif not isinstance(layout, DistributedLayout):
        tile = shape[-2:]
    lines = ["linear layout:", *(f"  {line}" for line in str(to_linear_layout(layout, tile)).splitlines())]
    if isinstance(layout, PaddedSharedLayout):
        pairs = zip(layout.intervals, layout.paddings, strict=True)
        lines += [f"  {padding} more elements after every {interval}" for interval, padding in pairs]
    if tile != shape:
        lines.append(f"  {shape[0]} such tiles, one after the other")
    return lines
