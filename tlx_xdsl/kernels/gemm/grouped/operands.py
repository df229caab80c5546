"""Operands of grouped products: their checks, and the descriptors that cut rows where a group ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tlx_xdsl.kernels.calls.operands import (
    TMA_ALIGNMENT,
    Operand,
    check_alignment,
    check_places,
    check_shape,
    check_types,
    describe,
    operand,
    row_strides,
)
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

MAX_ROWS = 1 << 30
"""Rows of all groups: what a ragged descriptor holds (`parts`)."""

LARGEST_EXTENT = (1 << 31) - 1


@dataclass(frozen=True)
class Problem:
    """Checked operands: `w` has a matrix for each group, or (`is_sum`) rows that the columns of `x` multiply."""

    x: Operand
    w: Operand
    groups: int

    @property
    def is_sum(self) -> bool:
        """Whether it is a sum over the rows of each group."""
        return len(self.w.shape) == 2

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        matrix = (self.x.shape[0], self.w.shape[-1])
        return (self.groups, *matrix) if self.is_sum else matrix

    def target(self, out: Any, dtypes: Sequence[str]) -> Operand:
        """The result, checked. Raises TypeError and ValueError."""
        target = operand(self.x.function, "out", out)
        check_types((target,), dtypes)
        check_places((self.x, target))
        check_shape(target, self.shape, f"{'groups, ' if self.is_sum else ''}rows of 'x', columns of 'w'")
        return target

    def check_elements(self) -> None:
        """Refuse what has no elements. Raises ValueError."""
        if 0 in (*self.x.shape, *self.w.shape, self.groups):
            raise ValueError(
                f"{self.x.function}: expected tensors with elements and at least one group, got {self.x.shape}, "
                f"{self.w.shape} and {self.groups} groups"
            )


def read_problem(function: str, x: Any, w: Any, offsets: Any, dtypes: Sequence[str]) -> Problem:
    """Look at the operands. Raises TypeError for types and ValueError for places, shapes and strides that don't fit."""
    left, right, ends = operand(function, "x", x), operand(function, "w", w), operand(function, "offsets", offsets)
    check_types((left, right), dtypes)
    check_places((left, ends))
    if ends.dtype != "i32":
        raise TypeError(f"{ends.what}: expected elements of type int32, got {ends.value.dtype}")
    if len(ends.shape) != 1 or (ends.shape[0] > 1 and ends.strides != (1,)):
        raise ValueError(
            f"{ends.what}: expected one contiguous dimension, got the shape {ends.shape} and the strides {ends.strides}"
        )
    if len(left.shape) != 2:
        raise ValueError(f"{left.what}: expected 2 dimensions, got the shape {left.shape}")
    if len(right.shape) not in (2, 3):
        raise ValueError(f"{right.what}: expected 3 dimensions, or 2 for a sum in groups, got the shape {right.shape}")
    groups = ends.shape[0]
    if right.shape[-2] != left.shape[1]:
        raise ValueError(
            f"{right.what}: expected {left.shape[1]} rows, as 'x' has columns, got {right.shape[-2]} in {right.shape}"
        )
    if len(right.shape) == 3 and right.shape[0] != groups:
        raise ValueError(f"{right.what}: expected {groups} matrices, as 'offsets' has groups, got {right.shape[0]}")
    rows = left.shape[0] if len(right.shape) == 3 else left.shape[1]
    if rows > MAX_ROWS:
        raise ValueError(f"{left.what}: expected at most {MAX_ROWS} rows in all groups, got {rows}")
    return Problem(left, right, groups)


def ragged(each: Operand, block: tuple[int, int]) -> TensorDescriptor:
    """A descriptor of rows that are cut where a group ends; `parts` explains its numbers.

    Raises ValueError for memory that TMA can't cut there.
    """
    check_alignment(each)
    strides = row_strides(each)
    if strides is None:
        raise ValueError(
            f"{each.what}: expected the dimension that has no groups to be contiguous, and the other one's stride to "
            f"be a multiple of {TMA_ALIGNMENT // each.element_bytes} elements, got the strides {each.strides} of the "
            f"shape {each.shape}"
        )
    distance = strides[0]
    shape = (LARGEST_EXTENT, LARGEST_EXTENT, MAX_ROWS, each.shape[1])
    return describe(each.value, shape, ((1 << 34) - distance, distance, distance, 1), (1, 1, *block))
