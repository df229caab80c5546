"""Small launches of a kernel: the same kernel on far fewer elements, made from a launch of any size.

What numbers mean is not known, so equal ones stay equal: an argument that is an extent or a stride of an array is that
of the smaller array, too. Extents that are small already, that are constants of the kernel, or that an array of
integers may count in, stay as they are. A launch that is made so may still be wrong for the kernel: the plain kernel
is run on it first, and what it can't run is no test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, prod
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tlx_xdsl.errors import InputError
from tlx_xdsl.grid import Grid, grid_of
from tlx_xdsl.language.compile_time import unwrapped
from tlx_xdsl.numerics.arrays import is_float

from ..driver.host_values import is_constant, is_descriptor, numpy_dtype, on_host
from ..launch.tensor_descriptor import SYMBOLIC_TENSORS, TensorDescriptor

LARGE = 640
"""Extents up to here stay: heads, batches, and the width of a head."""

MOST_ELEMENTS = 1 << 24
"""Elements of all arrays together: a second or two of random numbers and of copies."""

MOST_PROGRAMS = 6
"""Programs that are run: some along each axis, and several for each that a persistent kernel has."""

SIZES = ((528, 592, 656, 720), (512, 640, 384, 768))
"""Extents in the place of large ones, the first ones first. Odd multiples of 16, so that blocks are cut and rings of up
to seven buffers go round with blocks of 64; and multiples of 128 for kernels without masks."""


OTHER_SIZES = ((128,) * 4, (272,) * 4, (384,) * 4, (656,) * 4)
"""More of them, with other numbers of turns, for kernels whose synchronisation is not proved."""


@dataclass(frozen=True)
class SmallLaunch:
    """A launch in numbers, with arrays of this process."""

    grid: tuple[int, int, int]
    arguments: Mapping[str, Any]

    def copied(self) -> dict[str, Any]:
        """The arguments with arrays of their own."""
        return {name: _copied(value) for name, value in self.arguments.items()}


def small_launches(
    grid: Grid, named: Mapping[str, Any], all_sizes: Sequence[Sequence[int]] = SIZES
) -> Iterator[SmallLaunch]:
    """Yield small launches of a kernel for a launch with these arguments by name, the best test first."""
    for sizes in all_sizes:
        try:
            yield _small(grid, named, sizes)
        except InputError:
            continue


def _small(grid: Grid, named: Mapping[str, Any], sizes: Sequence[int]) -> SmallLaunch:
    arrays = {name: _Extents.of(value) for name, value in named.items() if _is_array(value)}
    numbers = {name: value for name, value in named.items() if type(value) is int}
    constants = {unwrapped(value) for value in named.values() if is_constant(value)}
    known = _Smaller([each for found in arrays.values() for each in found.shape], constants, sizes)
    places = [name for name, found in arrays.items() if found.dtype.kind in "iu" and found.count > 1]
    if places:
        known = _Smaller(_never_counted(arrays, named, places), constants, sizes)
    made = {name: found.smaller(known) for name, found in arrays.items()}
    if sum(each.count for each in made.values()) > MOST_ELEMENTS:
        known.shrink(made)
        made = {name: found.smaller(known) for name, found in arrays.items()}
        if sum(each.count for each in made.values()) > 4 * MOST_ELEMENTS:
            raise InputError("the launch has no small one")
    strides = _strides(arrays, made)
    arguments: dict[str, Any] = {}
    for at, (name, value) in enumerate(named.items()):
        if name in arrays:
            arguments[name] = made[name].filled(value, at)
        elif name in numbers:
            arguments[name] = _number(name, value, known, strides)
        else:
            arguments[name] = value
    programs = grid_of(grid, {name: unwrapped(value) for name, value in arguments.items()})
    return SmallLaunch(_few(programs), arguments)


def _never_counted(arrays: Mapping[str, _Extents], named: Mapping[str, Any], places: Sequence[str]) -> Sequence[int]:
    """Return the extents in which no array of integers may count: each holds a number that is larger."""
    least = min(int(_host_copy(_base(named[name])).max(initial=0)) for name in places)
    own = {extent for name in places for extent in arrays[name].shape}
    return [each for found in arrays.values() for each in found.shape if each < least and each not in own]


class _Smaller:
    """Extents that stand for larger ones."""

    def __init__(self, extents: Sequence[int], constants: set[Any], sizes: Sequence[int]):
        self._constants = constants
        self.by_extent: dict[int, int] = {}
        left = iter(sizes)
        for extent in sorted(set(extents), reverse=True):
            if extent <= LARGE or extent in constants:
                continue
            size = next(left, sizes[-1])
            # What a launch promises of a number, that 16 divides it or not, is a part of the kernel.
            self.by_extent[extent] = size if not extent % 16 else size + extent % 16

    def of(self, extent: int) -> int:
        """Return what stands for an extent."""
        return self.by_extent.get(extent, extent)

    def shrink(self, arrays: Mapping[str, _Extents]) -> None:
        """Make the outermost extents smaller, such as those of batches and heads, until arrays are small enough."""
        outer = sorted({each for found in arrays.values() for each in found.shape[:-2]} - self._constants)
        left = list(self.by_extent.values())
        for extent in outer:
            if extent > 2 and extent not in left:
                self.by_extent[extent] = 2 if extent % 16 else 16


@dataclass(frozen=True)
class _Extents:
    """An array's shape and strides, in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    @staticmethod
    def of(value: Any) -> _Extents:
        base: Any = value.base if is_descriptor(value) else value
        is_numpy = type(base) is np.ndarray
        dtype: np.dtype[Any] | None = base.dtype if is_numpy else numpy_dtype(base.dtype)
        if dtype is None:
            raise InputError(f"no kernel has elements of the type {base.dtype}")
        if is_descriptor(value):
            return _Extents(tuple(map(int, value.shape)), tuple(map(int, value.strides)), dtype)
        strides = tuple(int(each) // dtype.itemsize for each in base.strides) if is_numpy else tuple(base.stride())
        return _Extents(tuple(map(int, base.shape)), strides, dtype)

    @property
    def count(self) -> int:
        return prod(self.shape)

    def smaller(self, known: _Smaller) -> _Extents:
        """The same with smaller extents, whose strides are as dense as before."""
        shape = tuple(map(known.of, self.shape))
        strides = list(self.strides)
        order = sorted(range(len(shape)), key=lambda at: (self.strides[at], -at))
        for inner, outer in pairwise(order):
            if self.strides[outer] == 0 or self.strides[inner] == 0:
                continue
            if self.strides[outer] == self.strides[inner] * self.shape[inner]:
                strides[outer] = strides[inner] * shape[inner]
            else:
                gap = gcd(self.strides[outer], 16)
                strides[outer] = -(-strides[inner] * shape[inner] // gap) * gap + gap
        return _Extents(shape, tuple(strides), self.dtype)

    def filled(self, value: Any, seed: int) -> Any:
        """An array of this form with random numbers, or with what the array of integers holds."""
        base = _base(value)
        reach = 1 + sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))
        if not self.count:
            array = np.zeros(self.shape, self.dtype)
        elif self.dtype.kind in "iub":
            array = _host_copy(base).reshape(self.shape)
        else:
            flat = _random(reach, self.dtype, seed)
            array = as_strided(flat, self.shape, [stride * self.dtype.itemsize for stride in self.strides])
        if not is_descriptor(value):
            return array
        padding, rounds = getattr(value, "padding", "zero"), bool(getattr(value, "round_f32_to_tf32", False))
        return TensorDescriptor(
            array, list(self.shape), list(self.strides), list(value.block_shape), padding, rounds
        )  # fmt: skip


def _strides(before: Mapping[str, _Extents], after: Mapping[str, _Extents]) -> dict[int, int]:
    found: dict[int, int] = {}
    for name, old in before.items():
        for stride, new in zip(old.strides, after[name].strides, strict=True):
            found.setdefault(stride, new)
    return found


def _number(name: str, value: int, known: _Smaller, strides: Mapping[int, int]) -> int:
    """Return what stands for a number: the stride or the extent that it is, or a product of extents."""
    is_stride = "stride" in name.lower() or name.lower().startswith("ld")
    if value in strides and (is_stride or value not in known.by_extent):
        return strides[value]
    if value in known.by_extent or value <= LARGE:
        return known.of(value)
    if value in strides:
        return strides[value]
    for large, small in known.by_extent.items():
        if not value % large:
            return value // large * small
    return value


def _few(programs: tuple[int, int, int]) -> tuple[int, int, int]:
    """Fewer programs along the longest axes."""
    few = list(programs)
    while prod(few) > MOST_PROGRAMS:
        few[few.index(max(few))] -= 1
    return few[0], few[1], few[2]


# --- arrays -----------------------------------------------------------------------------------------------------------


def _base(value: Any) -> Any:
    return value.base if is_descriptor(value) else value


def _is_array(value: Any) -> bool:
    if is_constant(value) or isinstance(value, bool | int | float | np.generic | tuple):
        return False
    return hasattr(value, "dtype") or is_descriptor(value)


_PATTERN = 1 << 20
"""Random numbers that are drawn: larger arrays repeat them, from another place each."""


def _random(size: int, dtype: np.dtype[Any], seed: int) -> NDArray[Any]:
    drawn = np.random.default_rng(seed).standard_normal(min(size, _PATTERN + seed), np.float32)
    # Sums of many products stay small enough for 8 bits.
    values = np.resize(drawn * np.float32(0.5), size)
    return values.astype(dtype) if is_float(dtype) else np.zeros(size, dtype)


def _host_copy(base: Any) -> NDArray[Any]:
    """Return a copy of an array of integers, also of one on a GPU.

    Raises InputError for a tensor that stands for one.
    """
    if isinstance(base, np.ndarray):
        return cast("NDArray[Any]", base).copy()
    kind = getattr(getattr(base, "device", None), "type", "cpu")
    if kind == "meta" or type(base).__name__ in SYMBOLIC_TENSORS:
        raise InputError("what the tensor holds is not known")
    found: NDArray[Any] = on_host("an array", base if kind == "cpu" else base.cpu())
    return found.copy()


def _copied(value: Any) -> Any:
    if is_descriptor(value):
        return TensorDescriptor(
            _copied(value.base), list(value.shape), list(value.strides), list(value.block_shape),
            getattr(value, "padding", "zero"), bool(getattr(value, "round_f32_to_tf32", False)),
        )  # fmt: skip
    if not isinstance(value, np.ndarray):
        return value
    array = cast("NDArray[Any]", value)
    return _dense_copy(array) if array.size else array


def _dense_copy(array: NDArray[Any]) -> NDArray[Any]:
    """A copy with the same strides."""
    span = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True))
    flat = np.zeros(span // array.itemsize + 1, array.dtype)
    copy = as_strided(flat, array.shape, array.strides)
    copy[...] = array
    return copy
