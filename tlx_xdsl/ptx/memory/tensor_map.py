"""Tensor maps: what TMA knows of a tensor (PTX ISA, "Tensors", "tensormap.replace"; CUDA driver API, CUtensorMap).

The real layout of the 128 bytes is the driver's secret. Here they are the fields that `tensormap.replace` names, so
that a kernel that makes tensor maps from 128 zeros fills the same bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.encodings import Ints

TENSOR_MAP_BYTES = 128
RANK = 5
"""Dimensions at most."""
_FORM = struct.Struct("<Q5I4Q5I5IBBBBBB")
ELEMENT_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 4, 8, 2, 4, 4)
"""By the number of the type in `tensormap.replace`."""
FIELDS = {
    "global_address": 0, "global_dim": 8, "global_stride": 28, "box_dim": 60, "element_stride": 80, "elemtype": 100,
    "rank": 101, "interleave_layout": 102, "swizzle_mode": 103, "fill_mode": 104,
}  # fmt: skip
"""The first byte of each field."""


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A tensor, and the boxes that TMA copies of it; dimensions are in numpy's order, the contiguous one last."""

    array: Any
    """A numpy array whose last dimension is contiguous."""
    box: Ints
    """Elements of a box."""
    swizzle: int = 0
    """0 none, 1, 2 and 3 for 32, 64 and 128 bytes."""
    shape: Ints = ()
    """That of the array, if nothing else is said."""
    strides: Ints = ()
    """In elements; those of the array, if nothing else is said."""
    fills_with_nan: bool = False
    """True if what is outside of the tensor is NaN, not zero."""
    element_type: int | None = None
    """The number of the type in `tensormap.replace`."""
    fp4_padded: bool = False
    name: str = field(default="")

    def __post_init__(self) -> None:
        array = np.asarray(self.array)
        if not self.shape:
            object.__setattr__(self, "shape", tuple(array.shape))
        if not self.strides:
            object.__setattr__(self, "strides", tuple(each // array.itemsize for each in array.strides))
        if not 1 <= len(self.box) <= RANK or len(self.box) != len(self.shape) or len(self.shape) != len(self.strides):
            raise InputError(f"a tensor map has as many extents of the box as of the tensor, found {self.box}")
        if self.fp4_padded:
            raise InputError("tensor maps of padded fp4 are not known")

    @property
    def base(self) -> Any:
        """The array, as a tensor descriptor has it."""
        return self.array

    @property
    def block_shape(self) -> Ints:
        """The box, as a tensor descriptor has it."""
        return self.box


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a tensor map; the innermost dimension is the first."""

    address: int
    extents: Ints
    strides: Ints
    """Bytes from one element to the next along each dimension."""
    box: Ints
    element_bytes: int
    element_type: int
    swizzle: int
    fill: int


def _type_number(itemsize: int, kind: str) -> int:
    return {1: 0, 2: 6 if kind == "f" else 1, 4: 7 if kind == "f" else 2, 8: 4}[itemsize]


def encode(tensor: TensorMap, address: int) -> bytes:
    """The 128 bytes for a tensor at an address.

    Raises InputError for what no tensor map has.
    """
    dtype = np.asarray(tensor.array).dtype
    if tensor.strides[-1] != 1 and tensor.shape[-1] > 1:
        raise InputError("the last dimension of a tensor for TMA must be contiguous")
    number = tensor.element_type if tensor.element_type is not None else _type_number(dtype.itemsize, dtype.kind)
    strides = [stride * dtype.itemsize for stride in tensor.strides[-2::-1]]
    if any(stride % 16 for stride in strides) or address % 16:
        raise InputError("TMA wants addresses and strides that are multiples of 16 bytes")
    rank = len(tensor.shape)
    pad = [0] * (RANK - rank)
    raw = _FORM.pack(
        address, *tensor.shape[::-1], *pad, *strides, *pad, *(size - 0 for size in tensor.box[::-1]), *pad,
        *[1] * rank, *pad, number, rank - 1, 0, tensor.swizzle, int(tensor.fills_with_nan), 1,
    )  # fmt: skip
    return raw + bytes(TENSOR_MAP_BYTES - len(raw))


def decode(raw: bytes) -> Fields | str:
    """The fields of a tensor map, or what is wrong with it."""
    address, *rest = cast("list[int]", _FORM.unpack(raw[: _FORM.size]))
    extents, strides, box, steps = rest[:5], rest[5:9], rest[9:14], rest[14:19]
    number, rank, interleave, swizzle, fill, _ = rest[19:25]
    rank += 1
    if not address:
        return "it was not filled"
    if number >= len(ELEMENT_BYTES) or rank > RANK or interleave or swizzle > 3 or fill > 1:
        return "it has a type, a rank or a mode that is not known"
    size: int = ELEMENT_BYTES[number]
    if any(step != 1 for step in steps[:rank]):
        return "it has element strides other than 1"
    if not all(1 <= extent <= 256 for extent in box[:rank]):
        return f"its box is {box[:rank]}"
    if any(extent == 0 for extent in extents[:rank]):
        return "the tensor has no elements"
    return Fields(
        address, tuple(extents[:rank]), (size, *strides[: rank - 1]), tuple(box[:rank]), size, number, swizzle, fill
    )
