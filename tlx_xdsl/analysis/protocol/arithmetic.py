"""Arithmetic of a kernel's operations on the values of `values.py`.

Numbers of 32 and 64 bits are taken as those of mathematics: they do not wrap around, which a proof says. What is
narrower does, and so does what the kernel itself makes large. A quotient of what may be negative, and is not known, is
an unknown function of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from tlx_xdsl.dialects import arith, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base import accesses_of, is_set

from ..integers.functions import apply
from ..integers.transfer import Domain, bits_of, transfer
from .code import UnprovedError, attribute_text
from .demand import Demands
from .facts import Facts
from .values import Sum, Value, Values, View, add, only_atom, order, parts_of, scale

Known = Value | View | None
"""What an SSA value is: an integer, a view, or None for what is not followed."""

_BITS = {"and": "both", "or": "either", "xor": "unequal"}
_TURNS = 19
"""Loops are taken to turn less than two to the power of this, where what the kernel multiplies by decides about it."""


class Arithmetic(Domain[Value]):
    """The transfer functions, with the facts of one path."""

    def __init__(self, values: Values, demands: Demands):
        self.values = values
        self.demands = demands
        self.facts: Facts | None = None

    def constant(self, op: Operation, numbers: Sequence[int], bits: int) -> Value | None:
        """A number."""
        return _signed(numbers[0], bits) if len(set(numbers)) == 1 else None

    def program_id(self, op: tt.GetProgramIdOp) -> Value | None:
        """An atom that all tasks share."""
        return self.values.of("program", op.axis.value.data)

    def num_programs(self, op: tt.GetNumProgramsOp) -> Value | None:
        """An atom that all tasks share."""
        return self.values.of("programs", op.axis.value.data)

    def binary(self, op: Operation, function: str, left: Value, right: Value, *, signed: bool) -> Value | None:
        """Sums as they are; quotients and remainders by a number so that their own remainders are known."""
        bits = bits_of(op.results[0])
        assert bits is not None and self.facts is not None
        if bits == 1 and function in _BITS and not (isinstance(left, int) and isinstance(right, int)):
            return self.values.of(_BITS[function], left, right)
        if function in ("add", "sub", "mul", "shl"):
            found = self._sum(op, function, left, right)
            return None if found is None else self.wrapped(found, bits)
        if not self._is_exact(function, left, signed):
            left = self._number(op, left)
        if isinstance(left, int) and isinstance(right, int):
            numbers = [left, right] if signed or bits == 1 else [each % (1 << bits) for each in (left, right)]
            return _signed(int(apply(function, numbers)), bits)
        match function, right:
            case _ if not self._is_exact(function, left, signed):
                return self.elementwise(op, [left, right])
            case "xor", 1 if self._is_bit(left):
                return add(1, left, -1)
            case (("min" | "max"), _) if self.facts.is_natural(add(left, right, -1)):
                return left if function == "max" else right
            case (("min" | "max"), _) if self.facts.is_natural(add(right, left, -1)):
                return right if function == "max" else left
            case _:
                return self._divided(op, function, left, right)

    def _sum(self, op: Operation, function: str, left: Value, right: Value) -> Value | None:
        """A sum or a product, as in mathematics."""
        match function, left, right:
            case "add", _, _:
                return add(left, right)
            case "sub", _, _:
                return add(left, right, -1)
            case "mul", _, int():
                return scale(left, right)
            case "mul", int(), _:
                return scale(right, left)
            case "mul", _, _:
                return self.values.of("product", *sorted((left, right), key=order))
            case _, _, int() if 0 <= right < (bits_of(op.results[0]) or 0):
                return scale(left, 1 << right)
            case _:
                return self.elementwise(op, [left, right])

    def _number(self, op: Operation, value: Value) -> Value:
        """Return what may be negative as a number, where it is known.

        Raises UnprovedError where only a remainder of it may be.
        """
        if self.demands.may_be_kept(op.operands[0]):
            raise UnprovedError(op, "this divides what may be negative, and only a remainder of it is followed")
        assert self.facts is not None
        known = self.facts.constant(value)
        return value if known is None else known

    def wrapped(self, value: Value, bits: int, *, is_cast: bool = False) -> Value:
        """The signed number in so many bits: the same where that is assumed, or known."""
        assert self.facts is not None
        if isinstance(value, int):
            return _signed(value, bits)
        half = 1 << bits - 1
        is_large = abs(value.constant) >= half >> 1 or any(abs(factor) > half >> _TURNS for _, factor in value.parts)
        if bits >= 32 and not is_cast and not is_large:
            return value
        if self.facts.is_natural(add(value, half)) and self.facts.is_natural(add(half - 1, value, -1)):
            return value
        return add(self.remainder(add(value, half), 2 * half), -half)

    def _divided(self, op: Operation, function: str, left: Value, right: Value) -> Value | None:
        """A quotient or a remainder; an unknown function else."""
        match function, right:
            case (("truncdiv" | "floordiv"), int()) if right > 0:
                return self.quotient(left, right)
            case (("truncmod" | "mod"), int()) if right > 0:
                return self.remainder(left, right)
            case (("truncdiv" | "floordiv" | "truncmod" | "mod"), Sum()) if (
                split := _multiple(left, right)
            ) is not None:
                rest = self._rest(split[1], right)
                if rest is None:
                    return self.elementwise(op, [left, right])
                return split[0] if function.endswith("div") else rest
            case "shr", int() if right >= 0:
                return self.quotient(left, 1 << right)
            case "and", int() if right & (right + 1) == 0 <= right:
                return self.remainder(left, right + 1)
            case _:
                return self.elementwise(op, [left, right])

    def _is_exact(self, function: str, left: Value, signed: bool) -> bool:
        """Return whether a quotient is rounded down, as here, and a remainder is not negative."""
        is_rounded_down = function not in ("truncdiv", "truncmod", "floordiv", "ceildiv", "mod", "shr", "min", "max")
        is_signed_floor = signed and function not in ("truncdiv", "truncmod")
        assert self.facts is not None
        return is_rounded_down or is_signed_floor or self.facts.is_natural(left)

    def _rest(self, rest: Value, divisor: Value) -> Value | None:
        """Return what is left by a division, where it is less than the divisor: a program's index, of their number."""
        atoms = only_atom(rest), only_atom(divisor)
        kinds = [atom and (atom.kind, *atom.arguments) for atom in atoms]
        is_less = kinds[1] is not None and kinds[1][0] == "programs" and kinds[0] == ("program", *kinds[1][1:])
        return rest if rest == 0 or is_less else None

    def _is_bit(self, value: Value) -> bool:
        atoms = parts_of(value)
        if len(atoms) != 1 or atoms[0][0].kind != "remainder" or atoms[0][0].arguments[1] != 2:
            return False
        return (value, atoms[0][1]) in ((self.values.of("remainder", *atoms[0][0].arguments), 1),) or (
            value == add(1, self.values.of("remainder", *atoms[0][0].arguments), -1)
        )

    def remainder(self, value: Value, divisor: int) -> Value:
        """The remainder, as a number where that is known."""
        assert self.facts is not None
        known = self.facts.remainder(value, divisor, split=False)
        return self.values.of("remainder", value, divisor) if known is None else known

    def quotient(self, value: Value, divisor: int) -> Value:
        """The quotient: a number and that of what is a multiple of the divisor."""
        assert self.facts is not None
        if isinstance(value, int):
            return value // divisor
        rest = add(0, value)
        assert not isinstance(rest, int)
        atoms = add(value, rest.constant, -1)
        known = self.facts.remainder(atoms, divisor, split=False)
        if known is None:
            return self.values.of("quotient", value, divisor)
        whole = self.values.of("quotient", add(atoms, known, -1), divisor)
        return add(whole, (known + rest.constant) // divisor)

    def compare(self, op: Operation, sign: str, left: Value, right: Value, *, signed: bool) -> Value | None:
        """A bit, as a number where it is known."""
        assert self.facts is not None
        if not signed and sign not in ("==", "!=") and not all(map(self.facts.is_natural, (left, right))):
            return self.elementwise(op, [left, right])
        first, second = sorted((left, right), key=order)
        made, inverted = {
            "<": (("less", left, right), False),
            ">": (("less", right, left), False),
            "<=": (("less", right, left), True),
            ">=": (("less", left, right), True),
            "==": (("equal", first, second), False),
            "!=": (("equal", first, second), True),
        }[sign]
        bit = self.values.of(*made)
        return self._decided(add(1, bit, -1) if inverted else bit)

    def _decided(self, bit: Value) -> Value:
        assert self.facts is not None
        known = self.facts.truth(bit, split=False)
        return bit if known is None else int(known)

    def select(self, op: arith.SelectOp, condition: Value, left: Value, right: Value) -> Value | None:
        """Choose a value, as far as the condition is known."""
        assert self.facts is not None
        known = self.facts.truth(condition, split=False)
        if known is not None:
            return left if known else right
        return left if left == right else self.values.of("select", condition, left, right)

    def extend(self, op: Operation, value: Value, *, signed: bool) -> Value | None:
        """The same number; a bit that is set is -1 where it has a sign, what is negative is large where it has none."""
        assert self.facts is not None
        bits = bits_of(op.operands[0])
        assert bits is not None
        if signed:
            return scale(value, -1) if bits == 1 else value
        return value if self.facts.is_natural(value) else self.remainder(value, 1 << bits)

    def truncate(self, op: Operation, value: Value) -> Value | None:
        """The number in fewer bits; or its last bit."""
        bits = bits_of(op.results[0])
        assert bits is not None
        return self.remainder(value, 2) if bits == 1 else self.wrapped(value, bits, is_cast=True)

    def elementwise(self, op: Operation, operands: Sequence[Value]) -> Value | None:
        """An unknown function of the operands."""
        return self.values.of("function", attribute_text(op), tuple(operands))

    def add_pointer(self, op: tt.AddPtrOp, pointer: Value, offset: Value) -> Value | None:
        """An unknown address."""
        return self.elementwise(op, [pointer, offset])


def _signed(number: int, bits: int) -> int:
    """The number that so many bits of a number are; one bit has no sign."""
    number %= 1 << bits
    return number - (1 << bits) if bits > 1 and number >> bits - 1 else number


def _multiple(value: Value, divisor: Value) -> tuple[Value, Value] | None:
    """Return what the divisor is multiplied by in a part of a value, and the rest of it."""
    for atom, factor in parts_of(value):
        if atom.kind == "product" and divisor in atom.arguments:
            left, right = atom.arguments
            return scale(right if left == divisor else left, factor), add(value, Sum(0, ((atom, 1),)), -factor)
    return None


def is_uniform(op: Operation) -> bool:
    """Return whether all threads of all tasks get the same from an operation, at any time, if they give it the same.

    Arithmetic does, and so do loads, as long as what they read does not change; the index of a thread does not.
    """
    if isinstance(op, tt.LoadOp):
        return not is_set(op, "isVolatile")
    is_arithmetic = op.name.startswith(("arith.", "math.")) or isinstance(op, tt.AddPtrOp)
    return is_arithmetic and not op.regions and accesses_of(op) == ()


def _is_function(op: Operation) -> bool:
    """Return whether the same holds for an operation and what is in it, if it holds for that."""
    is_program = isinstance(op, tt.GetProgramIdOp | tt.GetNumProgramsOp)
    return is_program or op.name.startswith("scf.") or is_uniform(op)


def compute(arithmetic: Arithmetic, op: Operation, known: Mapping[SSAValue, Any]) -> Known:
    """Return what an operation gives.

    Raises UnprovedError where nothing is known of it.
    """
    operands = [known.get(value) for value in op.operands]
    if all(isinstance(each, int | Sum) for each in operands) and (
        found := transfer(arithmetic, op, [each for each in operands if isinstance(each, int | Sum)])
    ) is not None:  # fmt: skip
        return found
    if not is_uniform(op) or any(each is None for each in operands) or any(isinstance(each, View) for each in operands):
        raise UnprovedError(op, "what this gives is not followed, and the synchronisation depends on it")
    return arithmetic.values.of("function", attribute_text(op), tuple(operands))


def function_of(arithmetic: Arithmetic, op: Operation, known: Mapping[SSAValue, Any]) -> list[Value]:
    """The results of an operation with regions that computes: unknown functions of the values that it uses.

    Equal texts give equal numbers. Raises UnprovedError where it uses what is not followed.
    """
    numbers: dict[SSAValue, int] = {}

    def named(value: SSAValue) -> Any:
        if value in numbers:
            return ("inner", numbers[value])
        found = known.get(value)
        if found is None or isinstance(found, View):
            owner = value.owner
            if isinstance(owner, Block) or not _is_constant(owner):
                raise UnprovedError(op, "what this gives is not followed, and the synchronisation depends on it")
            return attribute_text(owner)
        return found

    def describe(each: Operation) -> Any:
        operands = tuple(named(value) for value in each.operands)
        for result in each.results:
            numbers[result] = len(numbers)
        inner: list[Any] = []
        for region in each.regions:
            for block in region.blocks:
                for argument in block.args:
                    numbers[argument] = len(numbers)
                inner.append(tuple(describe(child) for child in block.ops))
        if each.successors or not _is_function(each):
            raise UnprovedError(op, "what this gives is not followed, and the synchronisation depends on it")
        return (attribute_text(each), operands, tuple(inner))

    text = describe(op)
    return [arithmetic.values.of("function", text, number) for number in range(len(op.results))]


def _is_constant(op: Operation) -> bool:
    return not op.operands and not op.regions and accesses_of(op) == ()


# Views ---------------------------------------------------------------------------------------------------------------


def view(op: Operation, known: Mapping[SSAValue, Any], facts: Facts) -> View:
    """The view that an operation makes of another one.

    Raises UnprovedError where the number of the buffer is not known.
    """
    base = known.get(op.operands[0])
    if not isinstance(base, View):
        raise UnprovedError(op, "which buffer this is a view of is not known")
    shape = ttg.memdesc_type(op.results[0].type).shape
    match op:
        case ttg.MemDescIndexOp():
            index = known.get(op.operands[1])
            number = facts.number(index) if isinstance(index, int | Sum) else None
            if number is None:
                raise UnprovedError(op, "which of the buffers this is, is not known")
            if base.slot is not None or base.box is not None:
                return View(base.allocation, base.slot, base.box, is_exact=False)
            count = ttg.memdesc_type(op.operands[0].type).shape[0]
            if not 0 <= number < count:
                raise UnprovedError(op, f"buffer {number} of {count} is taken")
            return View(base.allocation, number, tuple((0, size) for size in shape), tuple(range(len(shape))))
        case ttg.MemDescTransOp() if base.box is not None and base.axes:
            axes = tuple(base.axes[int(dim)] for dim in op.order.get_values())
            return View(base.allocation, base.slot, base.box, axes, base.is_exact)
        case ttg.MemDescReshapeOp() | ttg.MemDescReinterpretOp() if base.slot is not None:
            # The bytes in another order: a part of it may be any.
            return View(base.allocation, base.slot, base.box, (), is_exact=base.is_exact and _is_as_large(op))
        case ttg.MemDescTransOp() if base.slot is not None:
            return base
        case _ if base.box is not None and len(base.axes) == len(shape):
            return _part(op, base, known, facts)
        case ttg.MemDescSubsliceOp() | tlx.MemDescDynamicSubsliceOp() if base.slot is not None:
            return View(base.allocation, base.slot, base.box, (), is_exact=False)
        case ttng.TMEMSubSliceOp() if base.slot is not None:
            return View(base.allocation, base.slot, base.box, (), is_exact=False)
        case _:
            raise UnprovedError(op, f"which part of '{op.operands[0].name_hint or 'the buffer'}' this is, is not known")


def _part(op: Operation, base: View, known: Mapping[SSAValue, Any], facts: Facts) -> View:
    """A part of a buffer whose dimensions are known."""
    assert base.box is not None
    shape = ttg.memdesc_type(op.results[0].type).shape
    match op:
        case ttg.MemDescSubsliceOp():
            box = list(base.box)
            for axis, offset, size in zip(base.axes, op.offsets.get_values(), shape, strict=True):
                box[axis] = (box[axis][0] + int(offset), size)
            return View(base.allocation, base.slot, tuple(box), base.axes, base.is_exact)
        case ttng.TMEMSubSliceOp():
            box, axis = list(base.box), base.axes[op.dim.value.data]
            box[axis] = (box[axis][0] + op.offset.value.data, shape[op.dim.value.data])
            return View(base.allocation, base.slot, tuple(box), base.axes, base.is_exact)
        case tlx.MemDescDynamicSubsliceOp():
            box = list(base.box)
            for axis, value, size in zip(base.axes, op.operands[1:], shape, strict=True):
                offset = known.get(value)
                number = facts.number(offset) if isinstance(offset, int | Sum) else None
                if number is None:
                    return View(base.allocation, base.slot, base.box, base.axes, is_exact=False)
                box[axis] = (box[axis][0] + number, size)
            return View(base.allocation, base.slot, tuple(box), base.axes, base.is_exact)
        case _:
            raise UnprovedError(op, f"which part of the buffer '{op.name}' gives is not known")


def _is_as_large(op: Operation) -> bool:
    before, after = (ttg.memdesc_type(value.type) for value in (op.operands[0], op.results[0]))
    return prod(before.shape) * before.element_bits == prod(after.shape) * after.element_bits
