"""The domain of the values in all programs of a grid: its transfer functions compute them, with numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.analysis.integers.functions import COMPARISONS, DIVISIONS, FUNCTIONS, apply
from tlx_xdsl.analysis.integers.transfer import Domain, bits_of, pointee_bytes, shape_of
from tlx_xdsl.dialects import arith, tt

from .values import (
    Booleans,
    Descriptor,
    Integers,
    Number,
    Pointer,
    Truth,
    Unknown,
    Value,
    compared,
    constant,
    fitted,
    mapped,
    merged,
    plus,
    times,
    unsigned,
    wrapped,
)


@dataclass(frozen=True, eq=False)
class Programs:
    """The programs that are looked at together."""

    grid: tuple[int, int, int]
    ids: tuple[Integers, Integers, Integers]
    """Along x, y and z."""

    @property
    def count(self) -> int:
        """The number of programs."""
        return len(self.ids[0])


_ORDERS = ("<", "<=", ">", ">=")
_INEXACT = Unknown("its mask is not known")
_TOO_LARGE = Unknown("an unsigned number leaves 63 bits")


@dataclass(frozen=True, eq=False)
class VectorDomain(Domain[Value]):
    """The programs, and which of them get to the operation; all operands are known."""

    programs: Programs
    active: Booleans

    def constant(self, op: Operation, numbers: Sequence[int], bits: int) -> Value:
        """One number, or one for each element."""
        shape = shape_of(op.results[0])
        array = np.array(numbers, np.int64).reshape((1, *(shape if len(numbers) > 1 else (1,) * len(shape))))
        return Truth((array.astype(bool),)) if bits == 1 else fitted((wrapped(array, bits),), bits)

    def program_id(self, op: tt.GetProgramIdOp) -> Value:
        """A number for each program."""
        return Number((self.programs.ids[op.axis.value.data],), 32)

    def num_programs(self, op: tt.GetNumProgramsOp) -> Value:
        """One number."""
        return constant(self.programs.grid[op.axis.value.data], bits=32)

    def make_range(self, op: tt.MakeRangeOp, start: int, end: int) -> Value:
        """A number for each element."""
        return Number((np.arange(start, end, dtype=np.int64)[None],), 32)

    # Arithmetic ----------------------------------------------------------------------------------------------------

    def binary(self, op: Operation, function: str, left: Value, right: Value, *, signed: bool) -> Value | None:
        """Sums and products of parts stay apart; other functions are computed element by element."""
        match left, right:
            case Truth(), Truth():
                if function == "and":
                    return Truth((*left.factors, *right.factors), left.exact and right.exact)
                exact = left.exact and right.exact
                return Truth((FUNCTIONS[function](left.total, right.total),)) if exact else _INEXACT
            case Number(), Number():
                return self._computed(function, left, right, signed=signed)
            case _:
                return None

    def _computed(self, function: str, left: Number, right: Number, *, signed: bool) -> Value:
        match function:
            case "add" | "sub":
                return plus(left, right, 1 if function == "add" else -1)
            case "mul":
                return times(left, right)
            case "shl" | "shr":
                low, high = right.bounds()
                if low < 0 or high >= left.bits:
                    return Unknown("it is shifted by more bits than it has")
                if function == "shl" and high > 61:
                    return Unknown("a product leaves 64 bits")
                if function == "shl":
                    return times(left, Number((np.int64(1) << right.total,)))
            case _ if function in DIVISIONS:
                zero = right.total == 0
                if np.any(zero & self.active.reshape((-1,) + (1,) * (zero.ndim - 1))):
                    return Unknown("it is divided by zero")
            case _:
                pass
        first, second = (left.total, right.total) if signed else (unsigned(left), unsigned(right))
        if first is None or second is None:
            return _TOO_LARGE
        return fitted((apply(function, [first, second]),), left.bits)

    def compare(self, op: Operation, sign: str, left: Value, right: Value, *, signed: bool) -> Value:
        """A mask."""
        match left, right:
            case Truth(), Truth() if not (left.exact and right.exact):
                return _INEXACT
            case (Truth(), Truth()) | (Number(), Number()):
                if isinstance(left, Number) and isinstance(right, Number):
                    if signed or min(left.bounds()[0], right.bounds()[0]) >= 0:
                        return Truth((compared(COMPARISONS[sign], left, right, is_order=sign in _ORDERS),))
                    first, second = unsigned(left), unsigned(right)
                else:
                    first, second = left.total, right.total
                if first is None or second is None:
                    return _TOO_LARGE
                return Truth((COMPARISONS[sign](first, second),))
            case _:
                return Unknown("pointers are compared")

    def select(self, op: arith.SelectOp, condition: Value, left: Value, right: Value) -> Value:
        """A choice between programs leaves sums apart; one between elements does not."""
        return merged(condition.total, left, right) if isinstance(condition, Truth) and condition.exact else _INEXACT

    def extend(self, op: Operation, value: Value, *, signed: bool) -> Value | None:
        """The number itself; as a signed number, the bit 1 is -1."""
        bits = bits_of(op.results[0]) or 64
        match value:
            case Truth():
                number = value.total.astype(np.int64) * (-1 if signed else 1)
                return Number((number,), bits) if value.exact else _INEXACT
            case Number() if signed or value.bounds()[0] >= 0:
                return fitted(value.parts, bits)
            case Number():
                total = unsigned(value)
                return _TOO_LARGE if total is None else fitted((total,), bits)
            case _:
                return None

    def truncate(self, op: Operation, value: Value) -> Value | None:
        """The low bits as a signed number; a single one is a mask."""
        bits = bits_of(op.results[0]) or 64
        if not isinstance(value, Number):
            return None
        return Truth(((value.total & 1).astype(bool),)) if bits == 1 else fitted(value.parts, bits)

    # Shapes --------------------------------------------------------------------------------------------------------

    def rearrange(self, op: Operation, value: Value, sources: Sequence[int | None]) -> Value:
        """Axes in another order; a new one, or one that grows, has one element, as nothing changes along it."""

        def moved(array: Any) -> Any:
            kept = [source + 1 for source in sources if source is not None]
            dropped = [axis for axis in range(1, array.ndim) if axis not in kept]
            shape = [1 if source is None else array.shape[source + 1] for source in sources]
            return array.transpose((0, *kept, *dropped)).reshape((-1, *shape))

        return mapped(value, moved)

    def reshape(self, op: tt.ReshapeOp, value: Value) -> Value:
        """The elements in their order."""
        source, result = shape_of(op.src), shape_of(op.result)

        def reshaped(array: Any) -> Any:
            if all(size == 1 for size in array.shape[1:]):
                return array.reshape((-1, *(1,) * len(result)))
            return np.broadcast_to(array, (len(array), *source)).reshape((len(array), *result))

        return mapped(value, reshaped)

    # Pointers and descriptors --------------------------------------------------------------------------------------

    def add_pointer(self, op: tt.AddPtrOp, pointer: Value, offset: Value) -> Value | None:
        """The sum of bytes."""
        if not isinstance(pointer, Pointer) or not isinstance(offset, Number):
            return Unknown("a pointer is moved by a single bit")
        size = constant(pointee_bytes(op.ptr), offset.parts[0].ndim - 1)
        wide = times(Number(offset.parts, 64), size)
        total = wide if isinstance(wide, Unknown) else plus(pointer.offset, wide)
        return total if isinstance(total, Unknown) else Pointer(pointer.base, total)

    def describe(self, op: Operation, pointer: Value, shape: Sequence[Value], strides: Sequence[Value]) -> Value | None:
        """A descriptor of numbers."""
        if not isinstance(pointer, Pointer):
            return None
        sizes, steps = (tuple(each for each in found if isinstance(each, Number)) for found in (shape, strides))
        return Descriptor(pointer, sizes, steps)
