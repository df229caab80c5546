"""Tensors as rows, for kernels that work along the last dimension."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tlx_xdsl.kernels.operands import Operand


@dataclass(frozen=True)
class Rows:
    """`count` rows of `columns` contiguous elements, `distance` elements apart."""

    count: int
    columns: int
    distance: int

    @property
    def block(self) -> int:
        """The power of two that holds a row."""
        return 1 << (self.columns - 1).bit_length()


def rows_of(each: Operand) -> Rows:
    """An operand of one dimension or more as rows. Raises ValueError where it is none, with what its strides are."""
    if not each.shape:
        raise ValueError(f"{each.what}: expected one dimension or more, got a single element")
    if 0 in each.shape:
        raise ValueError(f"{each.what}: expected elements, got the shape {each.shape}")
    columns = each.shape[-1]
    outer = [(extent, stride) for extent, stride in zip(each.shape, each.strides, strict=True)][:-1]
    distance = next((stride for extent, stride in reversed(outer) if extent != 1), columns)
    expected = distance
    contiguous = columns == 1 or each.strides[-1] == 1
    for extent, stride in reversed(outer):
        contiguous = contiguous and (extent == 1 or stride == expected)
        expected *= extent
    if not contiguous:
        raise ValueError(
            f"{each.what}: expected contiguous rows at one distance, got the strides {each.strides} of the shape "
            f"{each.shape}"
        )
    return Rows(prod(each.shape[:-1]), columns, distance)


def warps_for(block: int) -> int:
    """Warps for a block of so many elements: 8 elements for a thread, 1 to 32 warps."""
    return min(max(block // 256, 1), 32)
