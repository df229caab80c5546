"""Arithmetic, comparisons and conversions, and the broadcasting that the language does by itself.

The IR's integers have no sign; here they are signed, and what an operation takes as unsigned is cast and cast back,
which makes no operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects.base.tensors import element_bits
from tlx_xdsl.dialects.tt.enums import PropagateNan, RoundingMode
from tlx_xdsl.frontend.elementwise import CHOICES, COMPARISONS, FLOAT_OPS, FUNCTIONS, INTEGER_OPS, NAN_OPS, SIGNED_OPS

from .function import STATEMENTS, Function, handles, prop
from .idioms import rounded_up, slot_and_phase
from .types import (
    ATOM,
    NotExpressible,
    Text,
    binary,
    call,
    dtype,
    element_of,
    full,
    literal,
    method,
    number_of,
    shape_of,
    unary,
    unwrapped,
)

_EXTREMA = {"min": "tl.minimum", "max": "tl.maximum"}
_SYMBOLS = {
    op.name: symbol
    for table in (INTEGER_OPS, {symbol: ops[0] for symbol, ops in SIGNED_OPS.items()}, FLOAT_OPS, NAN_OPS)
    for symbol, op in table.items()
}
"""The operator, or `min` and `max`, of an operation on signed or on any elements."""
_UNSIGNED_SYMBOLS = {unsigned.name: symbol for symbol, (_, unsigned) in SIGNED_OPS.items()}
_PROPAGATING = {op.name: "tl.PropagateNan.ALL" for op in NAN_OPS.values()}
_FUNCTIONS = {
    **{function.op.name: f"tl.{name}" for name, function in FUNCTIONS.items()},
    **{op.name: f"tl.{name}" for name, ops in CHOICES.items() for op in ops},
}


# --- operands that the language broadcasts ----------------------------------------------------------------------------


def peeled(value: SSAValue) -> SSAValue:
    """The value that is broadcast to make `value`; `value` itself when nothing is."""
    value = unwrapped(value)
    op = value.owner
    if isinstance(op, Operation) and op.name in ("tt.splat", "tt.broadcast"):
        return op.operands[0]
    return value


def _common(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape that blocks of these shapes broadcast to without new dimensions; None when they do not."""
    ranks = {len(shape) for shape in shapes if shape}
    if len(ranks) > 1:
        return None
    sizes = [{size for size in column if size != 1} for column in zip(*(s for s in shapes if s), strict=True)]
    return None if any(len(each) > 1 for each in sizes) else tuple(each.pop() if each else 1 for each in sizes)


def broadcast(values: Sequence[SSAValue], shape: tuple[int, ...], fixed: int = 0) -> list[SSAValue]:
    """The values without the repetitions that the language puts in again; the first `fixed` ones stay as they are."""
    chosen = list(values)
    for index in range(fixed, len(values)):
        shorter = [*chosen[:index], peeled(chosen[index]), *chosen[index + 1 :]]
        if _common([shape_of(each) for each in shorter]) == shape:
            chosen = shorter
    return chosen


def _is_number(value: SSAValue) -> bool:
    return not shape_of(value) and number_of(value) is not None and not str(element_of(value.type)).startswith("f8")


def pair(fn: Function, lhs: SSAValue, rhs: SSAValue, *, ordered: bool = False) -> tuple[Text, Text]:
    """Two operands of one type: a number for a constant scalar, but never for both, as that would be no operation.

    With `ordered` the left one is never a number: the frontend would exchange the sides.
    """
    shape = shape_of(lhs)
    if shape:
        # Of two repeated values one must keep the shape.
        lhs, rhs = broadcast([lhs, rhs], shape)
        if not shape_of(lhs) and not shape_of(rhs):
            raise NotExpressible("an operation on two repeated scalars")
    right = literal_or_typed(fn, rhs)
    if ordered or _is_number(rhs):
        return fn.typed(lhs), right
    return literal_or_typed(fn, lhs), right


def literal_or_typed(fn: Function, value: SSAValue) -> Text:
    """A number for a constant scalar, an expression of the right type for anything else."""
    number = number_of(value)
    return literal(number, value.type) if number is not None and _is_number(value) else fn.typed(value)


def unsigned_pair(fn: Function, lhs: SSAValue, rhs: SSAValue) -> tuple[Text, Text]:
    """Two integers, taken as unsigned."""
    lhs, rhs = broadcast([lhs, rhs], shape_of(lhs)) if shape_of(lhs) else (lhs, rhs)
    return as_unsigned(fn, lhs), fn.unsigned(rhs)


def as_unsigned(fn: Function, value: SSAValue) -> Text:
    """An integer as the unsigned one of the same bits."""
    return method(fn.typed(value), "to", dtype(value.type, unsigned=True))


# --- arithmetic -------------------------------------------------------------------------------------------------------


def _operation(symbol: str, sides: tuple[Text, Text], nan: str | None = None) -> Text:
    return call(_EXTREMA[symbol], *sides, propagate_nan=nan) if symbol in _EXTREMA else binary(symbol, *sides)


@handles(*_SYMBOLS)
def _arithmetic(fn: Function, op: Any) -> Text:
    if op.name == "arith.divsi" and (text := rounded_up(fn, op)) is not None:
        return text
    lhs, rhs = op.operands
    minus_one = -1 if element_of(rhs.type) != IntegerType(1) else True
    if op.name == "arith.xori" and number_of(rhs) == minus_one and (shape_of(rhs) or minus_one is True):
        return unary("~", fn.typed(lhs))
    return _operation(_SYMBOLS[op.name], pair(fn, lhs, rhs), _PROPAGATING.get(op.name))


@handles(*_UNSIGNED_SYMBOLS)
def _unsigned_arithmetic(fn: Function, op: Any) -> Text:
    result = _operation(_UNSIGNED_SYMBOLS[op.name], unsigned_pair(fn, *op.operands))
    return method(result, "to", dtype(op.results[0].type))


@handles("arith.negf")
def _negate(fn: Function, op: Any) -> Text:
    return unary("-", fn.typed(op.operands[0]))


@handles(*_FUNCTIONS)
def _function(fn: Function, op: Any) -> Text:
    name, shape = _FUNCTIONS[op.name], shape_of(op.results[0])
    if len(op.operands) == 2:
        return call(name, *pair(fn, *op.operands))
    values = broadcast(op.operands, shape) if shape and len(op.operands) > 1 else list(op.operands)
    return call(name, *(fn.typed(value) for value in values))


@handles("tt.clampf")
def _clamp(fn: Function, op: Any) -> Text:
    nan = "tl.PropagateNan.ALL" if prop(op, "propagateNan") == PropagateNan.ALL else None
    shape = shape_of(op.x)
    low, high = broadcast([op.x, op.min, op.max], shape, fixed=1)[1:] if shape else (op.min, op.max)
    return call("tl.clamp", fn.typed(op.x), literal_or_typed(fn, low), literal_or_typed(fn, high), propagate_nan=nan)


@handles("tt.approx_divf")
def _approximate(fn: Function, op: Any) -> Text:
    return call("tl.fdiv", fn.typed(op.operands[0]), fn.typed(op.operands[1]), approx=True)


STATEMENTS["arith.remsi"] = slot_and_phase


# --- comparisons and choices ------------------------------------------------------------------------------------------

_SIGNED, _UNSIGNED, _FLOATING = (
    {predicates[kind]: symbol for symbol, predicates in COMPARISONS.items()} for kind in range(3)
)
_INVERTED = {"ugt": "<=", "uge": "<", "ult": ">=", "ule": ">"}
"""`arith.cmpf`'s predicates that are true when an operand is NaN: the opposite of these (MLIR, "arith.cmpf")."""


@handles("arith.cmpi")
def _compare_integers(fn: Function, op: Any) -> Text:
    predicate: str = op.predicate_name
    if predicate in _SIGNED:
        return binary(_SIGNED[predicate], *pair(fn, *op.operands, ordered=True))
    return binary(_UNSIGNED[predicate], *unsigned_pair(fn, *op.operands))


@handles("arith.cmpf")
def _compare_floats(fn: Function, op: Any) -> Text:
    predicate: str = op.predicate_name
    sides = pair(fn, *op.operands, ordered=True)
    if predicate in _FLOATING:
        return binary(_FLOATING[predicate], *sides)
    if predicate in _INVERTED:
        return unary("~", binary(_INVERTED[predicate], *sides))
    raise NotExpressible(f"'arith.cmpf' with the predicate {op.predicate.value.data}")


@handles("arith.select")
def _select(fn: Function, op: Any) -> Text:
    condition, first, second = op.operands
    shape = shape_of(first)
    if shape:
        peeled_ones = broadcast([condition, first, second], shape)
        if any(shape_of(value) for value in peeled_ones[1:]):
            condition, first, second = peeled_ones
        else:
            condition = broadcast([condition, first, second], shape)[0]
            second = peeled_ones[2]
    both = _is_number(first) and _is_number(second)
    one = fn.typed(first) if both else literal_or_typed(fn, first)
    return call("tl.where", fn.text(condition), one, literal_or_typed(fn, second))


# --- conversions ------------------------------------------------------------------------------------------------------


@handles("arith.sitofp", "arith.fptosi", "arith.extsi", "arith.truncf", "arith.extf", "arith.trunci")
def _convert(fn: Function, op: Any) -> Text:
    (value,), result = op.operands, op.results[0]
    target = element_of(result.type)
    number = number_of(value)
    if op.name == "arith.truncf" and number is not None and not shape_of(value) and element_bits(target) == 8:
        return full((), number, target)
    if target == IntegerType(1) and op.name == "arith.trunci":
        return binary("!=", binary("&", fn.typed(value), Text("1")), Text("0"))
    if element_of(value.type) == IntegerType(1) and op.name in ("arith.extsi", "arith.sitofp"):
        # A kernel's int1 has no sign: true is 1, not -1.
        return unary("-", method(fn.typed(value), "to", dtype(result.type)))
    return method(fn.typed(value), "to", dtype(result.type))


@handles("arith.extui", "arith.uitofp")
def _convert_unsigned(fn: Function, op: Any) -> Text:
    (value,), result = op.operands, op.results[0]
    if element_of(value.type) == IntegerType(1):
        return method(fn.typed(value), "to", dtype(result.type))
    return method(as_unsigned(fn, value), "to", dtype(result.type))


@handles("arith.fptoui")
def _to_unsigned(fn: Function, op: Any) -> Text:
    result = op.results[0]
    unsigned = method(fn.typed(op.operands[0]), "to", dtype(result.type, unsigned=True))
    return method(unsigned, "to", dtype(result.type))


@handles("tt.fp_to_fp")
def _float_to_float(fn: Function, op: Any) -> Text:
    source, target = element_of(op.src.type), element_of(op.result.type)
    towards_zero = prop(op, "rounding") == RoundingMode.RTZ
    narrows = element_bits(source) > element_bits(target)
    rounding = '"rtz"' if towards_zero and narrows else None
    return method(fn.typed(op.src), "to", dtype(target), fp_downcast_rounding=rounding)


@handles("tt.bitcast")
def _bitcast(fn: Function, op: Any) -> Text:
    return method(fn.typed(op.src), "to", dtype(op.result.type), bitcast=True)


@handles("tt.int_to_ptr", "tt.ptr_to_int")
def _cast_pointer(fn: Function, op: Any) -> Text:
    return method(fn.typed(op.src), "to", dtype(op.result.type))


@handles("tt.addptr")
def _add_to_pointer(fn: Function, op: Any) -> Text:
    pointer, offset = op.ptr, op.offset
    shape = shape_of(op.result)
    if shape:
        pointer, offset = broadcast([pointer, offset], shape)
        if not shape_of(pointer) and not shape_of(offset):
            pointer = op.ptr
    # A number on its own is an int32.
    right = fn.text(offset)
    return binary("+", fn.text(pointer), right)


# --- shapes -----------------------------------------------------------------------------------------------------------


@handles("tt.splat", "tt.broadcast")
def _repeat(fn: Function, op: Any) -> Text:
    return call("tl.broadcast_to", fn.typed(op.src), _shape(op))


def _shape(op: Any) -> list[int]:
    return list(shape_of(op.result))


@handles("tt.expand_dims")
def _expand_dims(fn: Function, op: Any) -> Text:
    rank, axis = len(shape_of(op.result)), prop(op, "axis")
    subscript = ", ".join("None" if dim == axis else ":" for dim in range(rank))
    value = fn.typed(op.src)
    if value.text.endswith("]") and value.precedence == ATOM and "None" in value.text:
        return call("tl.expand_dims", value, str(axis))
    return Text(f"{value.within(ATOM)}[{subscript}]")
