"""Operands of `scaled_gemm`: their types, shapes and orders of memory, and what has a scale."""

from __future__ import annotations

from math import prod
from typing import Any

from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor

from ...calls.operands import (
    TMA_ALIGNMENT,
    Operand,
    check_product,
    check_shape,
    check_type,
    describe,
    described_rows,
    is_aligned,
    operand,
    transposed,
)
from .config import LINE, STEP, ScaledConfig, Scaling

NAME = "scaled_gemm"

DTYPES = ("fp8e4nv", "fp8e5")
WIDE_DTYPES = ("bf16", "fp16")
"""Types of A where B alone has 8 bits."""
OUT_DTYPES = ("bf16", "fp16", "fp32")

MAX_LINE = (1 << 31) - 1024
"""Elements up to which 32-bit offsets reach, with those of a tile that lie outside."""


def factors(a: Any, b: Any) -> tuple[Operand, Operand]:
    """A and B. Raises TypeError for their types, ValueError for their shapes."""
    left, right = operand(NAME, "a", a), operand(NAME, "b", b)
    for each, dtypes, names in (
        (left, (*DTYPES, *WIDE_DTYPES), "float8_e4m3fn, float8_e5m2, bfloat16 or float16"),
        (right, DTYPES, "float8_e4m3fn or float8_e5m2"),
    ):
        check_type(each, dtypes, names)
    check_product(left, right)
    return left, right


def result(left: Operand, right: Operand, out: Any) -> Operand:
    """C. Raises TypeError for its type, ValueError for its shape."""
    found = operand(NAME, "out", out)
    check_type(found, OUT_DTYPES)
    check_shape(found, (left.shape[0], right.shape[1]), "rows of 'a', columns of 'b'")
    return found


def scales(name: str, value: Any) -> Operand:
    """A tensor of scales. Raises TypeError for what is none of float32."""
    found = operand(NAME, name, value)
    if not hasattr(value, "__setitem__"):
        # A number of numpy's has a type and a shape, but no memory that a kernel could read.
        raise TypeError(f"{found.what}: expected a tensor, got {type(value).__name__}")
    check_type(found, ("fp32",), "float32")
    return found


def scaling_of(left: Operand, right: Operand, scale_a: Operand, scale_b: Operand) -> Scaling:
    """Return what has a scale; kinds whose shapes are the same mean the same. Raises ValueError for other shapes."""
    (m, k), n = left.shape, right.shape[1]
    steps = -(-k // STEP)
    known: dict[Scaling, tuple[tuple[int, int], tuple[int, int]]] = {
        "rows": ((m, 1), (1, n)),
        "blocks": ((m, steps), (steps, -(-n // STEP))),
    }
    found = (scale_a.shape, scale_b.shape)
    if prod(scale_a.shape) == prod(scale_b.shape) == 1:
        return "tensors"
    for kind, shapes in known.items():
        if found == shapes:
            return kind
    expected = ", or ".join(f"{first} and {second}" for first, second in known.values())
    raise ValueError(
        f"{NAME}: arguments 'scale_a' and 'scale_b': expected one element each, or the shapes {expected}; "
        f"got {found[0]} and {found[1]}"
    )


def columns_per_scale(scale_b: Operand, n: int, k: int) -> int:
    """Return how many columns of weights alone share a scale. Raises ValueError for a shape that `mixed` has not."""
    steps, blocks = -(-k // STEP), -(-n // STEP)
    if prod(scale_b.shape) == 1 or scale_b.shape in ((1, n), (steps, n)):
        return 1
    if scale_b.shape == (steps, blocks):
        return STEP
    raise ValueError(
        f"{scale_b.what}: expected one element or the shape (1, {n}), ({steps}, {n}) or ({steps}, {blocks}), "
        f"got {scale_b.shape}"
    )


def descriptor(each: Operand, block: tuple[int, int], order: str = "rows") -> TensorDescriptor:
    """A descriptor of a matrix that lies by rows, or of the transpose of one that lies by columns.

    Raises ValueError for memory that TMA can't read so.
    """
    found = described_rows(each if order == "rows" else transposed(each), block)
    if found is None:
        elements = TMA_ALIGNMENT // each.element_bytes
        raise ValueError(
            f"{each.what}: expected contiguous {order} that start at multiples of {TMA_ALIGNMENT} bytes ({elements} "
            f"elements), got the strides {each.strides} of the shape {each.shape}"
        )
    return found


def lines_of_scales(
    scale_a: Operand, scale_b: Operand, config: ScaledConfig
) -> tuple[TensorDescriptor, TensorDescriptor] | None:
    """Descriptors of the memory of scales of blocks as lines of numbers, of which TMA begins to copy at each fourth.

    None where the scales of A's rows do not lie next to each other, or where a step's scales of A, or those of a column
    of blocks of B, do not begin at multiples of 16 bytes: a copy that begins elsewhere is an illegal instruction on an
    H200, which the descriptor does not prevent.
    """
    if scale_a.shape[0] > 1 and scale_a.strides[0] != 1:
        return None
    starts = ((scale_a.shape[1], scale_a.strides[1]), (scale_b.shape[1], scale_b.strides[1]))
    if any(count > 1 and stride * scale_a.element_bytes % TMA_ALIGNMENT for count, stride in starts):
        return None
    lines: list[TensorDescriptor] = []
    for each, count in ((scale_a, config.block_m), (scale_b, LINE)):
        last = sum((extent - 1) * stride for extent, stride in zip(each.shape, each.strides, strict=True))
        if not is_aligned(each) or min(each.strides) < 0 or last > MAX_LINE:
            return None
        lines.append(describe(each.value, (last + 1,), (1,), (count,), each.name))
    return lines[0], lines[1]


def padded_columns(n: int, element_bytes: int) -> int:
    """Elements from row to row of a result of n columns that TMA can store."""
    step = TMA_ALIGNMENT // element_bytes
    return -(-n // step) * step
