"""Rotary position embedding: `rope(x, cos, sin)`, in plain `tl`. Its gradient is the rotation back.

A pair (a, b) of a head at a position becomes (a cos - b sin, b cos + a sin): of D elements, i and i + D / 2 are a pair,
or, interleaved, 2i and 2i + 1.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalOperand=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import tlx_xdsl
import tlx_xdsl.language as tl

from ..calls.launching import Launch
from ..calls.operands import Operand, check_places, check_shape, check_types, empty, is_aligned, operand
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import rows as operators
from .tables import DTYPES

_ELEMENTS = 512
"""Pairs of a program, where there are so many: 4 for each of 128 threads. Of five sizes on an H200 the fastest."""

_UNIT = 8
"""Elements that strides and halves of heads are multiples of, so that 16 bytes are moved at a time."""


@tlx_xdsl.jit
def rope_rows(
    x_ptr, cos_ptr, sin_ptr, out_ptr, x_batch, x_head, x_row, out_batch, out_head, out_row, COUNT, HEADS, LENGTH,
    HALF: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr,
    INTERLEAVED: tl.constexpr, INVERSE: tl.constexpr,
):  # fmt: skip
    """ROWS rows, of all heads and batches, for each program; BLOCK is a power of two for HALF pairs."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = (rows % LENGTH).to(tl.int64)
    head = (rows // LENGTH % HEADS).to(tl.int64)
    batch = (rows // LENGTH // HEADS).to(tl.int64)
    pairs = tl.arange(0, BLOCK)
    inside = (rows < COUNT)[:, None] & (pairs < HALF)[None, :]
    angles = place[:, None] * HALF + pairs[None, :]
    cos = tl.load(cos_ptr + angles, inside, 0.0).to(tl.float32)
    sin = tl.load(sin_ptr + angles, inside, 0.0).to(tl.float32)
    if INVERSE:
        sin = -sin
    source = x_ptr + (batch * (x_batch * UNIT) + head * (x_head * UNIT) + place * (x_row * UNIT))[:, None]
    target = out_ptr + (batch * (out_batch * UNIT) + head * (out_head * UNIT) + place * (out_row * UNIT))[:, None]
    if INTERLEAVED:
        # Both of a pair lie together: rows are moved whole, and taken apart in registers.
        elements = tl.arange(0, 2 * BLOCK)
        within = (rows < COUNT)[:, None] & (elements < 2 * HALF)[None, :]
        whole = tl.load(source + elements[None, :], within, 0.0).to(tl.float32)
        a, b = tl.split(tl.reshape(whole, (ROWS, BLOCK, 2)))
        whole = tl.reshape(tl.join(a * cos - b * sin, b * cos + a * sin), (ROWS, 2 * BLOCK))
        tl.store(target + elements[None, :], whole.to(out_ptr.dtype.element_ty), within)
    else:
        a = tl.load(source + pairs[None, :], inside, 0.0).to(tl.float32)
        b = tl.load(source + pairs[None, :] + HALF, inside, 0.0).to(tl.float32)
        tl.store(target + pairs[None, :], (a * cos - b * sin).to(out_ptr.dtype.element_ty), inside)
        tl.store(target + pairs[None, :] + HALF, (b * cos + a * sin).to(out_ptr.dtype.element_ty), inside)


def rope(x: Any, cos: Any, sin: Any, *, interleaved: bool = False, inverse: bool = False) -> Any:
    """Return `x` with the pairs of each head turned by the angles of its position, computed in f32.

    x: (..., length, D) in fp16, bf16 or fp32, of up to 4 dimensions, D even; the last one is contiguous, the others
        have any strides.
    cos, sin: (length, D / 2), contiguous, fp32 or of x's type.
    interleaved: 2i and 2i + 1 are a pair, not i and i + D / 2.
    inverse: turn back, as the gradient does.

    The result is contiguous. torch's tensors have a gradient of `x`, none of the angles. Arrays of numpy and
    tensors on the CPU run there, as machine code.

    Raises TypeError for other types, ValueError for other shapes and strides.
    """
    return ROPE((x, cos, sin, None), (bool(interleaved), bool(inverse)))


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    x, cos, sin, _ = tensors
    interleaved, inverse = options
    given = operand("rope", "x", x)
    check_types((given,), DTYPES)
    if not 2 <= len(given.shape) <= 4 or given.shape[-1] % 2:
        raise ValueError(f"{given.what}: expected (..., length, an even head dimension), got the shape {given.shape}")
    length, dim = given.shape[-2:]
    angles = (operand("rope", "cos", cos), operand("rope", "sin", sin))
    for each in angles:
        _check_angles(each, given, (length, dim // 2))
    out = empty(given, given.shape)
    named = {"x": x, "cos": cos, "sin": sin, "out": out}
    if 0 in given.shape:
        return Prepared(named)
    result = operand("rope", "out", out)
    if given.strides[-1] != 1:
        raise ValueError(f"{given.what}: expected a contiguous last dimension, got the strides {given.strides}")
    batch, heads, *_ = (1, 1, *given.shape[:-2])[-2:]
    strides = (_strides(given), _strides(result))
    operands = (given, *angles, result)
    is_wide = all(stride % _UNIT == 0 for each in strides for stride in each) and dim // 2 % _UNIT == 0
    unit = _UNIT if is_wide and all(map(is_aligned, operands)) else 1
    names = ("batch", "head", "row")
    pointers = {f"{each.name}_ptr": each for each in operands}
    values = {
        **pointers,
        **{f"x_{name}": stride // unit for name, stride in zip(names, strides[0], strict=True)},
        **{f"out_{name}": stride // unit for name, stride in zip(names, strides[1], strict=True)},
        "COUNT": batch * heads * length,
        "HEADS": heads,
        "LENGTH": length,
    }
    block = 1 << (dim // 2 - 1).bit_length()
    rows = max(1, _ELEMENTS // block)
    constants = {
        "HALF": dim // 2, "BLOCK": block, "ROWS": rows, "UNIT": unit, "INTERLEAVED": interleaved, "INVERSE": inverse,
    }  # fmt: skip
    grid = (-(-batch * heads * length // rows),)
    aligned = tuple(pointers) if unit > 1 else ()
    return Prepared(named, (Launch.of(rope_rows, grid, values, constants, given.device, aligned=aligned),))


def _inverted(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Any:
    return ROPE(tensors, options)


ROPE = PlannedFunction("rope", _prepare, results=3, operator=operators.rope(_inverted))


def _strides(each: Operand) -> tuple[int, ...]:
    """The distances of batches, heads and rows; where there is one, 0."""
    found = [stride if extent != 1 else 0 for extent, stride in zip(each.shape, each.strides, strict=True)][:-1]
    return (0, 0, *found)[-3:]


def _check_angles(each: Operand, given: Operand, shape: tuple[int, int]) -> None:
    if each.dtype not in ("fp32", given.dtype):
        raise TypeError(f"{each.what}: expected fp32 or {given.value.dtype} as 'x' has, got {each.value.dtype}")
    check_places((given, each))
    check_shape(each, shape, "positions of 'x' by pairs")
    if each.strides != (shape[1], 1) and 0 not in shape:
        raise ValueError(f"{each.what}: expected contiguous rows, got the strides {each.strides}")
