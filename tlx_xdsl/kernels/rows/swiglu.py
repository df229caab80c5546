"""Gated linear units: `swiglu(gate, up)` and `swiglu_backward`, in plain `tl`.

With s = 1 / (1 + exp(-gate)):

    y = gate s up
    dgate = dy up s (1 + gate (1 - s)),  dup = dy gate s
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
from ..calls.operands import check_shape, check_types, empty, operand, rows_of, unit_of, width_of
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import rows as operators

DTYPES = ("fp16", "bf16", "fp32")

_BLOCK, _ELEMENTS = 4096, 4096
"""Columns of a program at most, and elements at least, where there are so many. Of six sizes on an H200 the fastest."""

_WARP_ELEMENTS = 512
"""Elements of a warp: 16 for each thread."""


@tlx_xdsl.jit
def block_of_rows(ROW_COUNT, COLUMNS, BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr):
    """Rows and columns of a program, which are (ROWS rows, BLOCK columns), and which of them are there."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (rows < ROW_COUNT)[:, None] & (columns < COLUMNS * UNIT)[None, :]
    return rows.to(tl.int64)[:, None], columns[None, :], inside


@tlx_xdsl.jit
def gated(gate, up):
    """The results of gates."""
    return gate / (1.0 + tl.exp(-gate)) * up


@tlx_xdsl.jit
def gradients(gate, up, dy):
    """The gradients of gates and of what they let through."""
    s = 1.0 / (1.0 + tl.exp(-gate))
    return dy * up * s * (1.0 + gate * (1.0 - s)), dy * gate * s


@tlx_xdsl.jit
def swiglu_rows(
    gate_ptr, up_ptr, out_ptr, gate_stride, up_stride, out_stride, ROW_COUNT, COLUMNS,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """One block for each program."""
    at, columns, inside = block_of_rows(ROW_COUNT, COLUMNS, BLOCK, ROWS, UNIT)
    gate = tl.load(gate_ptr + at * (gate_stride * UNIT) + columns, inside, 0.0).to(tl.float32)
    up = tl.load(up_ptr + at * (up_stride * UNIT) + columns, inside, 0.0).to(tl.float32)
    result = gated(gate, up)
    tl.store(out_ptr + at * (out_stride * UNIT) + columns, result.to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def swiglu_backward_rows(
    gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, gate_stride, up_stride, dout_stride, dgate_stride, dup_stride,
    ROW_COUNT, COLUMNS, BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """The gradients of one block for each program."""
    at, columns, inside = block_of_rows(ROW_COUNT, COLUMNS, BLOCK, ROWS, UNIT)
    gate = tl.load(gate_ptr + at * (gate_stride * UNIT) + columns, inside, 0.0).to(tl.float32)
    up = tl.load(up_ptr + at * (up_stride * UNIT) + columns, inside, 0.0).to(tl.float32)
    dy = tl.load(dout_ptr + at * (dout_stride * UNIT) + columns, inside, 0.0).to(tl.float32)
    dgate, dup = gradients(gate, up, dy)
    tl.store(dgate_ptr + at * (dgate_stride * UNIT) + columns, dgate.to(dgate_ptr.dtype.element_ty), inside)
    tl.store(dup_ptr + at * (dup_stride * UNIT) + columns, dup.to(dup_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def store_gated(gate_ptr, up_ptr, out_ptr, at, inside):
    """Store the results at places of tensors without gaps."""
    gate = tl.load(gate_ptr + at, inside, 0.0).to(tl.float32)
    up = tl.load(up_ptr + at, inside, 0.0).to(tl.float32)
    tl.store(out_ptr + at, gated(gate, up).to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def store_gradients(gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, at, inside):
    """Store the gradients at places of tensors without gaps."""
    gate = tl.load(gate_ptr + at, inside, 0.0).to(tl.float32)
    up = tl.load(up_ptr + at, inside, 0.0).to(tl.float32)
    dy = tl.load(dout_ptr + at, inside, 0.0).to(tl.float32)
    dgate, dup = gradients(gate, up, dy)
    tl.store(dgate_ptr + at, dgate.to(dgate_ptr.dtype.element_ty), inside)
    tl.store(dup_ptr + at, dup.to(dup_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def swiglu_elements(gate_ptr, up_ptr, out_ptr, COUNT, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    """BLOCK elements for each program, of tensors without gaps. The first has what is no whole vector at the end."""
    whole = COUNT // WIDTH * WIDTH
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    store_gated(gate_ptr, up_ptr, out_ptr, at, at < whole)
    if tl.program_id(0) == 0:
        rest = whole + tl.arange(0, WIDTH)
        store_gated(gate_ptr, up_ptr, out_ptr, rest, rest < COUNT)


@tlx_xdsl.jit
def swiglu_backward_elements(
    gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, COUNT, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):  # fmt: skip
    """The gradients, as `swiglu_elements`."""
    whole = COUNT // WIDTH * WIDTH
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    store_gradients(gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, at, at < whole)
    if tl.program_id(0) == 0:
        rest = whole + tl.arange(0, WIDTH)
        store_gradients(gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, rest, rest < COUNT)


def swiglu(gate: Any, up: Any, out: Any = None) -> Any:
    """Return gate / (1 + exp(-gate)) * up: fp16, bf16 or fp32, all of one type and shape, computed in f32.

    The last dimension is contiguous, the others lie as rows at one distance, another for each: both may be halves of
    one tensor. `out` receives the result where it is given. torch's tensors have gradients. Arrays of numpy and
    tensors on the CPU run there, as machine code.

    Raises TypeError for other types, ValueError for other shapes and strides.
    """
    return SWIGLU((gate, up, out))


def swiglu_backward(gate: Any, up: Any, dout: Any) -> tuple[Any, Any]:
    """Return the gradients of `swiglu`'s arguments, with `dout` that of its result. As `swiglu` else."""
    return SWIGLU_BACKWARD((gate, up, dout, None, None))


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    gate, up, out = tensors
    named = {"gate": gate, "up": up, "out": out}
    return _prepared("swiglu", (swiglu_rows, swiglu_elements), named)


def _prepare_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    gate, up, dout, dgate, dup = tensors
    named = {"gate": gate, "up": up, "dout": dout, "dgate": dgate, "dup": dup}
    return _prepared("swiglu_backward", (swiglu_backward_rows, swiglu_backward_elements), named)


SWIGLU_BACKWARD = PlannedFunction(
    "swiglu_backward", _prepare_backward, results=slice(3, 5), operator=operators.SWIGLU_BACKWARD
)
SWIGLU = PlannedFunction("swiglu", _prepare, results=2, operator=operators.swiglu(SWIGLU_BACKWARD))


def _prepared(name: str, kernels: tuple[Any, Any], tensors: dict[str, Any]) -> Prepared:
    """The launch of the first kernel, on blocks of rows, or of the second, on elements in a row that are not aligned.

    Tensors that are None are made.
    """
    first = operand(name, "gate", tensors["gate"])
    check_types((first,), DTYPES)
    named = {each: empty(first, first.shape) if value is None else value for each, value in tensors.items()}
    operands = tuple(operand(name, *each) for each in named.items())
    check_types(operands, DTYPES)
    for each in operands[1:]:
        check_shape(each, first.shape, "that of 'gate'")
    if 0 in first.shape:
        return Prepared(named)
    rows = tuple(rows_of(each) for each in operands)
    unit = unit_of(operands, rows)
    pointers = {f"{each.name}_ptr": each for each in operands}
    width = width_of(operands, rows)
    if unit == 1 < width and all(each.count == 1 or each.distance == each.columns for each in rows):
        count = rows[0].count * rows[0].columns
        launch = Launch.of(
            kernels[1], (-(-count // _BLOCK),), {**pointers, "COUNT": count}, {"BLOCK": _BLOCK, "WIDTH": width},
            first.device, aligned=tuple(pointers), num_warps=_BLOCK // _WARP_ELEMENTS,
        )  # fmt: skip
        return Prepared(named, (launch,))
    values = {
        **pointers,
        **{f"{each}_stride": row.distance // unit for each, row in zip(named, rows, strict=True)},
        "ROW_COUNT": rows[0].count,
        "COLUMNS": rows[0].columns // unit,
    }
    block = min(rows[0].block, _BLOCK)
    together = 1 << (max(1, min(_ELEMENTS // block, rows[0].count)).bit_length() - 1)
    launch = Launch.of(
        kernels[0],
        (-(-rows[0].count // together), -(-rows[0].columns // block)),
        values,
        {"BLOCK": block, "ROWS": together, "UNIT": unit},
        first.device,
        aligned=tuple(pointers) if unit > 1 else (),
        num_warps=max(together * block // _WARP_ELEMENTS, 1),
    )
    return Prepared(named, (launch,))
