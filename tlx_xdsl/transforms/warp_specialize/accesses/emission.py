"""Polynomials as values before an operation: what the kernel has computed already is taken, the rest is computed."""

from __future__ import annotations

from functools import reduce

from xdsl.dialects import arith as upstream, scf
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.analysis.integers.polynomials import Monomial, Polynomial, Symbol
from tlx_xdsl.analysis.integers.symbols import Counter, Scalar
from tlx_xdsl.analysis.integers.transfer import bits_of, shape_of
from tlx_xdsl.analysis.structure.sums import Sums
from tlx_xdsl.analysis.structure.values import ONE
from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.transforms.rewriting import constant, insert_before

_SMALLEST_PART = 2
"""Terms of a sum that is taken from the kernel as a part of a larger one."""


class Emission:
    """Makes values of polynomials in the scalars of one function, or of a region of it that is isolated from above."""

    def __init__(self, function: tt.FuncOp | Region, sums: Sums):
        self._sums = sums
        self._values: dict[Polynomial, list[SSAValue]] = {}
        blocks = function.blocks if isinstance(function, Region) else ()
        for argument in (argument for block in blocks for argument in block.args):
            self._add(argument)
        for op in function.walk():
            arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
            for value in (*op.results, *arguments):
                self._add(value)

    def value(self, form: Polynomial, bits: int, before: Operation) -> SSAValue:
        """The number with `bits` bits, for use in `before`.

        Raises ValueError where it is made of what is not known there.
        """
        if (known := self._known(form, bits, before)) is not None:
            return known
        if (number := form.number) is not None:
            return self._insert(constant(number, IntegerType(bits)), form, before)
        left = self._of_induction_variables(form)
        parts: list[SSAValue] = []
        while (part := self._largest_part(left, before)) is not None:
            parts.append(self.value(part, bits, before))
            left -= part
        for product, number in sorted(left, key=_reading_order):
            if number > 0 or not parts:
                parts.append(self._product(product, number, bits, before))
                left -= Polynomial({product: number})
        total = reduce(lambda a, b: self._insert(upstream.AddiOp(a, b), None, before), parts)
        for product, number in sorted(left, key=_reading_order):
            total = self._insert(upstream.SubiOp(total, self._product(product, -number, bits, before)), None, before)
        self._values.setdefault(form, []).append(total)
        return total

    # What there is ---------------------------------------------------------------------------------------------------

    def _add(self, value: SSAValue) -> None:
        if shape_of(value) or bits_of(value) in (None, 1):
            return
        self._values.setdefault(self._sums.of(value), []).append(value)

    def _known(self, form: Polynomial, bits: int, before: Operation) -> SSAValue | None:
        there = [value for value in self._values.get(form, ()) if dominates(value, before)]
        exact = next((value for value in there if value.type == IntegerType(bits)), None)
        if exact is not None or not there or form.number is not None:
            return exact
        return self._cast(there[0], bits, form, before)

    def _largest_part(self, form: Polynomial, before: Operation) -> Polynomial | None:
        """The sum with the most terms that the kernel has computed and that is a part of `form`."""
        parts = [
            part
            for part, values in self._values.items()
            if _SMALLEST_PART <= len(part.terms) <= len(form.terms)
            and all(form.terms.get(product) == number for product, number in part)
            and any(dominates(value, before) for value in values)
        ]
        return max(parts, key=lambda part: len(part.terms), default=None)

    # What is made ----------------------------------------------------------------------------------------------------

    def _of_induction_variables(self, form: Polynomial) -> Polynomial:
        """`form` with induction variables instead of counters, where the step divides its factor."""
        for symbol in sorted(form.symbols, key=str):
            if not isinstance(symbol, Counter) or (factor := form.coefficient(symbol)) is None:
                continue
            loop = symbol.loop
            assert isinstance(loop, scf.ForOp)
            step = self._sums.of(loop.step).number
            if step is None or not step or any(number % step for _, number in factor):
                continue
            turns = Polynomial.of(Scalar(loop.body.block.args[0])) - self._sums.of(loop.lb)
            whole = Polynomial({product: number // step for product, number in factor})
            form = form - factor * Polynomial.of(symbol) + whole * turns
        return form

    def _product(self, product: Monomial, number: int, bits: int, before: Operation) -> SSAValue:
        form = Polynomial({product: number})
        if (known := self._known(form, bits, before)) is not None:
            return known
        symbols = sorted(product, key=lambda each: str(each[0]))
        factors = [self._symbol(symbol, bits, before) for symbol, power in symbols for _ in range(power)]
        if number != 1 or not factors:
            factors.append(self.value(Polynomial.constant(number), bits, before))
        return reduce(lambda a, b: self._insert(upstream.MuliOp(a, b), None, before), factors)

    def _symbol(self, symbol: Symbol, bits: int, before: Operation) -> SSAValue:
        form = Polynomial.of(symbol)
        if (known := self._known(form, bits, before)) is not None:
            return known
        match symbol:
            case Counter(loop) if isinstance(loop, scf.ForOp):
                way = Polynomial.of(Scalar(loop.body.block.args[0])) - self._sums.of(loop.lb)
                step = self._sums.of(loop.step)
                turns = self.value(way, bits, before)
                if step == ONE:
                    return turns
                return self._insert(upstream.DivSIOp(turns, self.value(step, bits, before)), form, before)
            case Scalar(value) if dominates(value, before):
                return self._cast(value, bits, form, before)
            case Scalar(value) if isinstance(op := value.owner, Operation) and _may_be_repeated(op):
                inner = {each: self.value(self._sums.of(each), bits_of(each) or bits, before) for each in op.operands}
                copy = insert_before(before, op.clone(inner))
                copy.results[0].name_hint = value.name_hint
                self._values.setdefault(form, []).append(copy.results[0])
                return self._cast(copy.results[0], bits, form, before)
            case _:
                raise ValueError(f"{symbol} is not known there")

    def _cast(self, value: SSAValue, bits: int, form: Polynomial, before: Operation) -> SSAValue:
        type_ = IntegerType(bits)
        if value.type == type_:
            return value
        if isinstance(value.type, IndexType):
            return self._insert(upstream.IndexCastOp(value, type_), form, before)
        cast = arith.ExtSIOp if (bits_of(value) or 0) < bits else arith.TruncIOp
        return self._insert(cast(value, type_), form, before)

    def _insert(self, op: Operation, form: Polynomial | None, before: Operation) -> SSAValue:
        insert_before(before, op)
        if form is not None:
            self._values.setdefault(form, []).append(op.results[0])
        return op.results[0]


def _may_be_repeated(op: Operation) -> bool:
    """True for a pure operation; what has no operands is known in all of a kernel, or a constant."""
    return bool(op.operands) and not op.regions and is_side_effect_free(op)


def dominates(value: SSAValue, op: Operation) -> bool:
    """True if `value` is defined before `op` in a block around it."""
    block = value.block if isinstance(value, BlockArgument) else value.owner.parent  # pyright: ignore
    while op.parent is not block:
        if (around := op.parent_op()) is None:
            return False
        op = around
    return isinstance(value, BlockArgument) or (value.owner is not op and value.owner.is_before_in_block(op))  # pyright: ignore


def _reading_order(term: tuple[Monomial, int]) -> tuple[bool, str]:
    product, _ = term
    return not product, "*".join(sorted(str(symbol) for symbol, _ in product))
