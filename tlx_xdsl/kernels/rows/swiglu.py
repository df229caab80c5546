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

from functools import partial
from typing import Any

import tlx_xdsl
import tlx_xdsl.language as tl

from ..calls.launching import Launch
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import rows as operators
from .edges import load, store
from .tables import Tables, prepared

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
    gate = load(gate_ptr + at * (gate_stride * UNIT), columns, inside)
    up = load(up_ptr + at * (up_stride * UNIT), columns, inside)
    result = gated(gate, up)
    store(out_ptr + at * (out_stride * UNIT), columns, result, inside)


@tlx_xdsl.jit
def swiglu_backward_rows(
    gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, gate_stride, up_stride, dout_stride, dgate_stride, dup_stride,
    ROW_COUNT, COLUMNS, BLOCK: tl.constexpr, ROWS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """The gradients of one block for each program."""
    at, columns, inside = block_of_rows(ROW_COUNT, COLUMNS, BLOCK, ROWS, UNIT)
    gate = load(gate_ptr + at * (gate_stride * UNIT), columns, inside)
    up = load(up_ptr + at * (up_stride * UNIT), columns, inside)
    dy = load(dout_ptr + at * (dout_stride * UNIT), columns, inside)
    dgate, dup = gradients(gate, up, dy)
    store(dgate_ptr + at * (dgate_stride * UNIT), columns, dgate, inside)
    store(dup_ptr + at * (dup_stride * UNIT), columns, dup, inside)


@tlx_xdsl.jit
def store_gated(gate_ptr, up_ptr, out_ptr, at, inside):
    """Store the results at places of tensors without gaps."""
    gate, up = load(gate_ptr, at, inside), load(up_ptr, at, inside)
    tl.store(out_ptr + at, gated(gate, up).to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def store_gradients(gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, at, inside):
    """Store the gradients at places of tensors without gaps."""
    dgate, dup = gradients(load(gate_ptr, at, inside), load(up_ptr, at, inside), load(dout_ptr, at, inside))
    store(dgate_ptr, at, dgate, inside)
    store(dup_ptr, at, dup, inside)


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
    launch = partial(_launch, "swiglu", (swiglu_rows, swiglu_elements))
    return prepared("swiglu", {"gate": gate, "up": up, "out": out}, "gate up", "out", launch)


def _prepare_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    gate, up, dout, dgate, dup = tensors
    named = {"gate": gate, "up": up, "dout": dout, "dgate": dgate, "dup": dup}
    launch = partial(_launch, "swiglu_backward", (swiglu_backward_rows, swiglu_backward_elements))
    return prepared("swiglu_backward", named, "gate up dout", "dgate dup", launch)


SWIGLU_BACKWARD = PlannedFunction(
    "swiglu_backward", _prepare_backward, results=slice(3, 5), operator=operators.SWIGLU_BACKWARD
)
SWIGLU = PlannedFunction("swiglu", _prepare, results=2, operator=operators.swiglu(SWIGLU_BACKWARD))


def _launch(name: str, kernels: tuple[Any, Any], **tensors: Any) -> Launch:
    """The launch of the first kernel, on blocks of rows, or of the second, on elements that are not aligned."""
    of = Tables(name, tensors)
    rows, aligned = of.rows, tuple(of.pointers)
    if of.width > 1 and all(each.count == 1 or each.distance == each.columns for each in of.all_rows):
        count = rows.count * rows.columns
        return Launch.of(
            kernels[1], (-(-count // _BLOCK),), {**of.pointers, "COUNT": count}, {"BLOCK": _BLOCK, "WIDTH": of.width},
            of.first.device, aligned=aligned, num_warps=_BLOCK // _WARP_ELEMENTS,
        )  # fmt: skip
    block = min(rows.block, _BLOCK)
    together = 1 << (max(1, min(_ELEMENTS // block, rows.count)).bit_length() - 1)
    return Launch.of(
        kernels[0],
        (-(-rows.count // together), -(-rows.columns // block)),
        {**of.arguments, "ROW_COUNT": rows.count},
        {"BLOCK": block, "ROWS": together, "UNIT": of.unit},
        of.first.device,
        aligned=aligned if of.unit > 1 else (),
        num_warps=max(together * block // _WARP_ELEMENTS, 1),
    )
