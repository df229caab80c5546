"""What operations make of the numbers, masks, pointers and descriptors that all programs have (`values.py`).

What is not here, or loaded from memory, or computed with floats, is unknown, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Operation

from tlx_xdsl.analysis.program_coverage.values import (
    Booleans,
    Descriptor,
    Integers,
    Number,
    Pointer,
    Truth,
    Unknown,
    Value,
    constant,
    fitted,
    mapped,
    merged,
    plus,
    times,
    unsigned,
    wrapped,
)
from tlx_xdsl.dialects import arith, tlx, tt, ttg
from tlx_xdsl.dialects.base.tensors import as_tensor, element_bits, integer_bits, pointee_type, scalar_type


@dataclass(frozen=True, eq=False)
class Programs:
    """The programs that are looked at together."""

    grid: tuple[int, int, int]
    ids: tuple[Integers, Integers, Integers]
    """Along x, y and z."""

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.ids[0])


@dataclass(frozen=True, eq=False)
class Here:
    """Where an operation stands: the programs, and which of them get there."""

    programs: Programs
    active: Booleans


Rule: TypeAlias = Callable[[Any, Sequence[Any], Here], Value]

RULES: dict[type[Operation], Rule] = {}
"""By the class of the operation; a rule is called when all operands are known."""


def _rule(*classes: type[Operation]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(classes, rule))
        return rule

    return register


def bits_of(type_: Attribute) -> int | None:
    """Bits of integers and of tensors of them; None for other types."""
    scalar = scalar_type(type_)
    return 64 if isinstance(scalar, IndexType) else integer_bits(scalar)


def shape_of(type_: Attribute) -> tuple[int, ...]:
    """The dimensions of a tensor; none for a scalar."""
    tensor = as_tensor(type_)
    return () if tensor is None else tuple(tensor.get_shape())


def _of_bits(array: Any, bits: int) -> Value:
    return Truth((array.astype(bool),)) if bits == 1 else fitted((array,), bits)


# --- where numbers come from -------------------------------------------------------------------------------------


@_rule(upstream.ConstantOp)
def _constant(op: upstream.ConstantOp, _: Sequence[Any], __: Here) -> Value:
    type_, value = op.result.type, op.value
    bits = bits_of(type_)
    shape = shape_of(type_)
    if bits is None:
        return Unknown("it is computed with floats")
    if isinstance(value, IntegerAttr):
        numbers = [value.value.data]
    else:
        assert isinstance(value, DenseIntOrFPElementsAttr)
        numbers = [int(number) for number in value.get_values()]
    if len(numbers) == 1:
        array = np.full((1,) * (len(shape) + 1), numbers[0], np.int64)
    else:
        array = np.array(numbers, np.int64).reshape((1, *shape))
    return _of_bits(array if bits == 1 else wrapped(array, bits), bits)


@_rule(tt.GetProgramIdOp)
def _program_id(op: tt.GetProgramIdOp, _: Sequence[Any], here: Here) -> Value:
    return Number((here.programs.ids[op.axis.value.data],), 32)


@_rule(tt.GetNumProgramsOp)
def _num_programs(op: tt.GetNumProgramsOp, _: Sequence[Any], here: Here) -> Value:
    return constant(here.programs.grid[op.axis.value.data], bits=32)


@_rule(tt.MakeRangeOp)
def _make_range(op: tt.MakeRangeOp, _: Sequence[Any], __: Here) -> Value:
    return Number((np.arange(op.start.value.data, op.end.value.data, dtype=np.int64)[None],), 32)


# --- shapes ------------------------------------------------------------------------------------------------------


@_rule(tt.SplatOp)
def _splat(op: tt.SplatOp, operands: Sequence[Any], _: Here) -> Value:
    ones = (1,) * len(shape_of(op.result.type))
    return mapped(operands[0], lambda array: array.reshape((-1, *ones)))


@_rule(tt.UnsplatOp)
def _unsplat(_: tt.UnsplatOp, operands: Sequence[Any], __: Here) -> Value:
    return mapped(operands[0], lambda array: array.reshape(-1))


@_rule(tt.ExpandDimsOp)
def _expand_dims(op: tt.ExpandDimsOp, operands: Sequence[Any], _: Here) -> Value:
    return mapped(operands[0], lambda array: np.expand_dims(array, op.axis.value.data + 1))


@_rule(tt.BroadcastOp, ttg.ConvertLayoutOp)
def _same(_: Operation, operands: Sequence[Any], __: Here) -> Value:
    # What is equal along an axis has one element there anyway.
    return operands[0]


@_rule(tt.TransOp)
def _trans(op: tt.TransOp, operands: Sequence[Any], _: Here) -> Value:
    order = (0, *(int(dim) + 1 for dim in op.order.get_values()))
    return mapped(operands[0], lambda array: array.transpose(order))


@_rule(tt.ReshapeOp)
def _reshape(op: tt.ReshapeOp, operands: Sequence[Any], _: Here) -> Value:
    if op.allow_reorder is not None:
        return Unknown("it passes a reshape that may reorder elements")
    source, result = shape_of(op.src.type), shape_of(op.result.type)
    ones = (1,) * len(result)

    def reshaped(array: Any) -> Any:
        if all(size == 1 for size in array.shape[1:]):
            return array.reshape((-1, *ones))
        return np.broadcast_to(array, (len(array), *source)).reshape((len(array), *result))

    return mapped(operands[0], reshaped)


# --- integers ----------------------------------------------------------------------------------------------------


@_rule(upstream.AddiOp, upstream.SubiOp)
def _add(op: Operation, operands: Sequence[Any], here: Here) -> Value:
    left, right = operands
    if isinstance(left, Truth):
        return _bitwise(op, operands, here)
    return plus(left, right, 1 if isinstance(op, upstream.AddiOp) else -1)


@_rule(upstream.MuliOp)
def _multiply(op: Operation, operands: Sequence[Any], here: Here) -> Value:
    left, right = operands
    return _bitwise(op, operands, here) if isinstance(left, Truth) else times(left, right)


_OF_TRUTH: dict[type[Operation], Callable[[Booleans, Booleans], Booleans]] = {
    upstream.AddiOp: np.not_equal,
    upstream.SubiOp: np.not_equal,
    upstream.MuliOp: np.logical_and,
    upstream.OrIOp: np.logical_or,
    upstream.XOrIOp: np.not_equal,
    upstream.MinUIOp: np.logical_and,
    upstream.MaxUIOp: np.logical_or,
    # As a signed number, the bit 1 is -1.
    upstream.MinSIOp: np.logical_or,
    upstream.MaxSIOp: np.logical_and,
}
_OF_NUMBERS: dict[type[Operation], Callable[[Integers, Integers], Integers]] = {
    upstream.AndIOp: np.bitwise_and,
    upstream.OrIOp: np.bitwise_or,
    upstream.XOrIOp: np.bitwise_xor,
    upstream.MinSIOp: np.minimum,
    upstream.MaxSIOp: np.maximum,
}


@_rule(upstream.AndIOp, upstream.OrIOp, upstream.XOrIOp, upstream.MinSIOp, upstream.MaxSIOp)
def _bitwise(op: Operation, operands: Sequence[Any], _: Here) -> Value:
    left, right = operands
    if not isinstance(left, Truth):
        return fitted((_OF_NUMBERS[type(op)](left.total, right.total),), left.bits)
    if isinstance(op, upstream.AndIOp):
        return Truth((*left.factors, *right.factors), left.exact and right.exact)
    if not (left.exact and right.exact):
        return Unknown("its mask is not known")
    return Truth((_OF_TRUTH[type(op)](left.total, right.total),))


@_rule(upstream.MinUIOp, upstream.MaxUIOp)
def _unsigned_extremum(op: Operation, operands: Sequence[Any], here: Here) -> Value:
    if isinstance(operands[0], Truth):
        return _bitwise(op, operands, here)
    function = np.minimum if isinstance(op, upstream.MinUIOp) else np.maximum
    return _on_unsigned(operands, function)


def _on_unsigned(operands: Sequence[Number], function: Callable[[Integers, Integers], Integers]) -> Value:
    left, right = (unsigned(each) for each in operands)
    if left is None or right is None:
        return Unknown("an unsigned number leaves 63 bits")
    return fitted((wrapped(function(left, right), operands[0].bits),), operands[0].bits)


_DIVISIONS: dict[type[Operation], Callable[[Integers, Integers], Integers]] = {
    upstream.DivSIOp: lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)),
    upstream.RemSIOp: lambda a, b: np.sign(a) * (np.abs(a) % np.abs(b)),
    upstream.DivUIOp: lambda a, b: a // b,
    upstream.RemUIOp: lambda a, b: a % b,
    upstream.FloorDivSIOp: lambda a, b: a // b,
    upstream.CeilDivSIOp: lambda a, b: -(-a // b),
}


@_rule(*_DIVISIONS)
def _divide(op: Operation, operands: Sequence[Any], here: Here) -> Value:
    if isinstance(operands[0], Truth):
        return Unknown("it is divided in one bit")
    zero = operands[1].total == 0
    if np.any(zero & here.active.reshape((-1,) + (1,) * (zero.ndim - 1))):
        return Unknown("it is divided by zero")

    def divided(left: Integers, right: Integers) -> Integers:
        return _DIVISIONS[type(op)](left, np.where(zero, 1, right))

    if isinstance(op, upstream.DivUIOp | upstream.RemUIOp):
        return _on_unsigned(operands, divided)
    return fitted((divided(operands[0].total, operands[1].total),), operands[0].bits)


@_rule(upstream.ShLIOp, upstream.ShRSIOp, upstream.ShRUIOp)
def _shift(op: Operation, operands: Sequence[Any], _: Here) -> Value:
    left, right = operands
    if isinstance(left, Truth):
        return Unknown("it is shifted in one bit")
    low, high = right.bounds()
    if low < 0 or high >= left.bits:
        return Unknown("it is shifted by more bits than it has")
    if isinstance(op, upstream.ShLIOp):
        return Unknown("a product leaves 64 bits") if high > 61 else times(left, Number((np.int64(1) << right.total,)))
    if isinstance(op, upstream.ShRUIOp):
        return _on_unsigned(operands, np.right_shift)
    return fitted((left.total >> right.total,), left.bits)


_COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
"""In the order of MLIR's numbers for the predicates; the last four are unsigned."""


@_rule(arith.CmpiOp)
def _compare(op: Any, operands: Sequence[Any], _: Here) -> Value:
    predicate = int(op.predicate.value.data)
    left, right = operands
    if isinstance(left, Truth):
        if predicate > 1:
            return Unknown("single bits are compared by size")
        if not (left.exact and right.exact):
            return Unknown("its mask is not known")
        return Truth((_COMPARISONS[predicate](left.total, right.total),))
    if not isinstance(left, Number):
        return Unknown("pointers are compared")
    if predicate < 6:
        return Truth((_COMPARISONS[predicate](left.total, right.total),))
    a, b = unsigned(left), unsigned(right)
    if a is None or b is None:
        return Unknown("an unsigned number leaves 63 bits")
    return Truth((_COMPARISONS[predicate](a, b),))


@_rule(arith.SelectOp)
def _select(_: Any, operands: Sequence[Any], __: Here) -> Value:
    condition, yes, no = operands
    if not condition.exact:
        return Unknown("its mask is not known")
    choice = condition.total
    if all(size == 1 for size in choice.shape[1:]):
        return merged(choice.reshape(-1), yes, no)
    match yes, no:
        case Number(), Number():
            return fitted((np.where(choice, yes.total, no.total),), yes.bits)
        case Truth(), Truth():
            return Truth((np.where(choice, yes.total, no.total),), yes.exact and no.exact)
        case Pointer(), Pointer() if yes.base is no.base:
            offset = fitted((np.where(choice, yes.offset.total, no.offset.total),), 64)
            return offset if isinstance(offset, Unknown) else Pointer(yes.base, offset)
        case _:
            return Unknown("it points into one array or another")


@_rule(arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, upstream.IndexCastOp)
def _cast(op: Operation, operands: Sequence[Any], _: Here) -> Value:
    (operand,) = operands
    bits = bits_of(op.results[0].type)
    assert bits is not None
    if isinstance(operand, Truth):
        if not operand.exact:
            return Unknown("its mask is not known")
        return Number((operand.total.astype(np.int64) * (-1 if isinstance(op, arith.ExtSIOp) else 1),), bits)
    if bits == 1:
        return Truth(((operand.total & 1).astype(bool),))
    if isinstance(op, arith.ExtUIOp) and operand.bounds()[0] < 0:
        total = unsigned(operand)
        return Unknown("an unsigned number leaves 63 bits") if total is None else fitted((total,), bits)
    return fitted(operand.parts, bits)


# --- pointers and descriptors ------------------------------------------------------------------------------------


@_rule(tt.AddPtrOp)
def _addptr(op: tt.AddPtrOp, operands: Sequence[Any], _: Here) -> Value:
    pointer, index = operands
    if isinstance(index, Truth):
        return Unknown("a pointer is moved by a single bit")
    # The index is widened first: bytes do not wrap around in its type.
    size = constant(bytes_of(pointee_type(op.ptr.type)), index.parts[0].ndim - 1)
    wide = times(Number(index.parts, 64), size)
    offset = wide if isinstance(wide, Unknown) else plus(pointer.offset, wide)
    return offset if isinstance(offset, Unknown) else Pointer(pointer.base, offset)


@_rule(tt.BitcastOp)
def _bitcast(_: tt.BitcastOp, operands: Sequence[Any], __: Here) -> Value:
    return operands[0] if isinstance(operands[0], Pointer) else Unknown("its bits are reinterpreted")


def bytes_of(element: Attribute) -> int:
    """Bytes from one element to the next, of scalars or of a tensor of them."""
    return max(8, element_bits(scalar_type(element))) // 8


@_rule(tt.MakeTensorDescOp)
def _describe(op: Any, operands: Sequence[Any], _: Here) -> Value:
    rank = len(op.shape)
    return Descriptor(operands[0], tuple(operands[1 : 1 + rank]), tuple(operands[1 + rank :]))


@_rule(tlx.MakeTensorDescOp)
def _describe_there(op: Any, operands: Sequence[Any], here: Here) -> Value:
    return _describe(op, operands[1:], here)


def is_followed(type_: Attribute) -> bool:
    """Whether values of this type are numbers, masks, pointers or descriptors: all others do not matter."""
    scalar = cast(Any, scalar_type(type_))
    return isinstance(scalar, IntegerType | IndexType | tt.PointerType | tt.TensorDescType)
