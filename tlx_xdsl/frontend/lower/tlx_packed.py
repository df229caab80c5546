"""Lowering of arithmetic on four 8-bit floats at once."""

from __future__ import annotations

from tlx_xdsl.dialects import ttng
from tlx_xdsl.dialects.ttng import PackedArithOpKind as Kind
from tlx_xdsl.language.core import dtype, float8e4nv, float8e5, int8, uint8
from tlx_xdsl.layouts.encodings import Ints

from ..calls import Call, Handler, lowers
from ..values import Tensor, Value

RESULTS = (float8e4nv, float8e5)
PAIRS = (int8, uint8)
"""Element types that hold two fp4 values."""


def _packed(kind: Kind) -> Handler:
    names = ("lhs", "rhs", "acc") if kind is Kind.FMA else ("lhs", "rhs")

    def handle(call: Call) -> Value:
        operands = [_operand(call, name) for name in names]
        addend = None if kind is Kind.MUL else operands[-1]
        whole = addend or next((each for each in operands if each.dtype in RESULTS), None)
        if whole is not None and whole.dtype not in RESULTS:
            call.expected(names[-1], "a block of float8e4nv or float8e5")
        element, shape = _result(call, operands, whole)
        if addend is not None and addend.dtype != element:
            call.fail("dtype", f"'{names[-1]}' must have the type of the result, {element}, found {addend.describe()}")
        return call.emit_tensor(ttng.PackedArithOp, element, shape, operands, op_kind=kind)

    return handle


def _operand(call: Call, name: str) -> Tensor:
    value = call.block(name, "a block of float8e4nv, float8e5 or int8")
    if value.dtype not in (*RESULTS, *PAIRS):
        call.expected(name, "a block of float8e4nv, float8e5 or int8")
    return value


def _result(call: Call, operands: list[Tensor], whole: Tensor | None) -> tuple[dtype, Ints]:
    """Element type and shape of the result; `whole` is an operand without pairs, if there is one."""
    if call.given("dtype"):
        element = call.dtype()
    elif whole is not None and isinstance(whole.dtype, dtype):
        element = whole.dtype
    else:
        call.fail("dtype", "pairs of fp4 say nothing about the result: give its 'dtype', float8e4nv or float8e5")
    if element not in RESULTS:
        call.expected("dtype", "float8e4nv or float8e5")
    if whole is not None:
        return element, whole.shape
    *outer, last = operands[0].shape
    return element, (*outer, 2 * last)


for _kind in (Kind.ADD, Kind.SUB, Kind.MUL, Kind.FMA):
    lowers(f"tlx.packed_{_kind.keyword}4")(_packed(_kind))
