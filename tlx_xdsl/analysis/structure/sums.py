"""Scalars of a function as polynomials in what can't be taken apart: arguments, quotients, loaded numbers.

Sums, products and conversions are spelled out. What a loop advances by the same number in each turn is its initial
value and a multiple of the loop's `Counter`, and so is the induction variable. Two operations that compute the same
from the same are one symbol.

Numbers are taken as they are meant, without wrapping around in their type: an offset that wraps around is no place in
a tensor.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce

from xdsl.dialects import arith as upstream, scf
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects import arith

from ..integers.polynomials import Call, Polynomial, Symbol
from ..integers.symbols import Counter, Scalar
from ..integers.transfer import bits_of, shape_of
from .values import ZERO, Computed

_SAME = (arith.ExtSIOp, arith.TruncIOp, upstream.IndexCastOp)
"""Operations that give the number that they take."""
_STRIPPED = ("sext", "trunc")


class Sums:
    """The polynomials of the scalars of one function, each found when it is first asked for."""

    def __init__(self) -> None:
        self._forms: dict[SSAValue, Polynomial] = {}
        self._first: dict[Hashable, SSAValue] = {}

    def of(self, value: SSAValue) -> Polynomial:
        """The polynomial of a scalar integer."""
        if (known := self._forms.get(value)) is None:
            # A value that depends on itself finds itself as a symbol.
            self._forms[value] = Polynomial.of(Scalar(value))
            known = self._forms[value] = self._found(value)
        return known

    def expanded(self, form: Polynomial) -> Polynomial:
        """A polynomial in scalars as one in what they are made of, without conversions."""
        total = ZERO
        for product, number in form:
            factors = [self._symbol(symbol) for symbol, power in product for _ in range(power)]
            total += reduce(lambda a, b: a * b, factors, Polynomial.constant(number))
        return total

    def step(self, argument: BlockArgument) -> Polynomial | None:
        """Return what each turn of a loop adds to a number that it carries, if that is the same number in each."""
        loop = loop_of(argument)
        if loop is None or argument.index == 0:
            return None
        total, value = ZERO, turned(argument)
        while value is not argument:
            op = value.owner
            if not isinstance(op, upstream.AddiOp | upstream.SubiOp):
                return None
            value, other, sign = op.lhs, op.rhs, 1 if isinstance(op, upstream.AddiOp) else -1
            if other is argument and sign == 1:
                value, other = other, value
            total += self.of(other) * sign
        return total if is_invariant(total, loop) else None

    def _symbol(self, symbol: Symbol) -> Polynomial:
        match symbol:
            case Scalar(value):
                return self.of(value)
            case Computed(function, arguments) if function in _STRIPPED:
                return self.expanded(arguments[0])
            case Computed(function, arguments, bits, signed):
                return Polynomial.of(Computed(function, tuple(map(self.expanded, arguments)), bits, signed))
            case _:
                return Polynomial.of(symbol)

    def _found(self, value: SSAValue) -> Polynomial:
        op = value.owner
        if isinstance(value, BlockArgument):
            return self._carried(value)
        assert isinstance(op, Operation)
        match op:
            case upstream.ConstantOp() if (number := constant_number(value)) is not None:
                return Polynomial.constant(number)
            case upstream.AddiOp():
                return self.of(op.lhs) + self.of(op.rhs)
            case upstream.SubiOp():
                return self.of(op.lhs) - self.of(op.rhs)
            case upstream.MuliOp():
                return self.of(op.lhs) * self.of(op.rhs)
            case upstream.ShLIOp() if (number := self.of(op.rhs).number) is not None and 0 <= number < 31:
                return self.of(op.lhs) * (1 << number)
            case _ if isinstance(op, _SAME) and bits_of(op.operands[0]) != 1:
                return self.of(op.operands[0])
            case _:
                return Polynomial.of(Scalar(self._representative(op, value)))

    def _carried(self, argument: BlockArgument) -> Polynomial:
        loop = loop_of(argument)
        if loop is None:
            return Polynomial.of(Scalar(argument))
        if argument.index == 0:
            return self.of(loop.lb) + self.of(loop.step) * counter(loop)
        step = self.step(argument)
        if step is None:
            return Polynomial.of(Scalar(argument))
        return self.of(loop.iter_args[argument.index - 1]) + step * counter(loop)

    def _representative(self, op: Operation, value: SSAValue) -> SSAValue:
        """The first value that is computed as this one is."""
        is_same = not op.regions and len(op.results) == 1 and is_side_effect_free(op)
        if not is_same or any(shape_of(operand) or bits_of(operand) is None for operand in op.operands):
            return value
        facts = tuple(sorted((name, str(held)) for name, held in (*op.properties.items(), *op.attributes.items())))
        key = (op.name, facts, value.type, tuple(self.of(operand) for operand in op.operands))
        return self._first.setdefault(key, value)


def counter(loop: scf.ForOp) -> Polynomial:
    """The number of turns of a loop that are over."""
    return Polynomial.of(Counter(loop, loop.body.block.args[0].name_hint or "turn"))


def loop_of(argument: BlockArgument) -> scf.ForOp | None:
    """The loop whose body has this argument."""
    loop = argument.block.parent_op()
    return loop if isinstance(loop, scf.ForOp) else None


def turned(argument: BlockArgument) -> SSAValue:
    """Return what the loop's body gives for what it was given as `argument`."""
    end = argument.block.last_op
    assert isinstance(end, scf.YieldOp)
    return end.operands[argument.index - 1]


def constant_number(value: SSAValue) -> int | None:
    """The number that a constant scalar is."""
    op = value.owner
    if not isinstance(op, upstream.ConstantOp) or bits_of(value) is None or shape_of(value):
        return None
    held = getattr(op.value, "value", None)
    return None if held is None else int(held.data)


def is_invariant(form: Polynomial, loop: scf.ForOp) -> bool:
    """True if every symbol is the same in all turns of the loop."""
    return all(_is_outside(symbol, loop) for symbol in form.all_symbols)


def _is_outside(symbol: Symbol, loop: scf.ForOp) -> bool:
    match symbol:
        case Scalar(value):
            block = value.block if isinstance(value, BlockArgument) else value.owner.parent_block()  # pyright: ignore
            return block is not None and not loop.is_ancestor(block)
        case Counter(other):
            return not loop.is_ancestor(other)
        case Call():
            return True
        case _:
            return True
