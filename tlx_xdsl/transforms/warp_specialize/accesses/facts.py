"""Facts about numbers of a kernel: known at a launch or not, signs, divisors, and their text in Python."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from xdsl.dialects import arith as upstream, scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.analysis.integers.polynomials import Monomial, Polynomial, Symbol
from tlx_xdsl.analysis.integers.symbols import Counter, Scalar
from tlx_xdsl.analysis.structure.sums import Sums
from tlx_xdsl.analysis.structure.values import ZERO
from tlx_xdsl.dialects import arith, tlx, tt

from .arguments import HOST_VALUE, descriptors_of
from .quotients import quotient

_NATURAL = (tt.GetProgramIdOp, tt.GetNumProgramsOp, tlx.ReplicaIdOp, tlx.ClusterCTARankOp)
_AS_DIVIDEND = (upstream.DivSIOp, upstream.RemSIOp, upstream.ShRSIOp)
"""Operations whose result has the sign of the first operand, because no kernel divides a place by less than 1."""
_CHOICES = (upstream.MinSIOp, upstream.MaxSIOp, arith.SelectOp)
_SIGNS: dict[type[Operation], str] = {upstream.DivSIOp: "//", upstream.RemSIOp: "%"}
_CALLS: dict[type[Operation], str] = {upstream.MinSIOp: "min", upstream.MaxSIOp: "max"}


class Facts:
    """Facts about polynomials in the scalars of one function."""

    def __init__(self, function: tt.FuncOp, sums: Sums):
        self.sums = sums
        self._entry = function.body.blocks[0]
        attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
        self._divisors: dict[SSAValue, int] = {}
        for argument, held in zip(self._entry.args, attributes, strict=False):
            if isinstance(divisor := held.data.get("tt.divisibility"), IntegerAttr):
                self._divisors[argument] = divisor.value.data
        self._of_host = host_values(function)
        self._programs = [op for op in function.body.walk() if isinstance(op, tt.GetNumProgramsOp)]

    # What follows from the arguments ---------------------------------------------------------------------------------

    def is_of_launch(self, form: Polynomial) -> bool:
        """True if the number follows from the kernel's arguments."""
        return all(self._symbol_is_of_launch(symbol) for symbol in form.symbols)

    def parts(self, form: Polynomial) -> tuple[Polynomial, Polynomial]:
        """The part that follows from the arguments, and the rest."""
        rest = form.part(lambda symbol: not self._symbol_is_of_launch(symbol))
        return form - rest, rest

    def by_program(self, form: Polynomial) -> dict[Monomial, Polynomial]:
        """A polynomial without a part of the first kind, as products of its other symbols with their factors."""
        found: dict[Monomial, Polynomial] = {}
        for product, number in form:
            inner = frozenset((symbol, power) for symbol, power in product if not self._symbol_is_of_launch(symbol))
            found[inner] = found.get(inner, ZERO) + Polynomial({product - inner: number})
        return found

    def value_is_of_launch(self, value: SSAValue) -> bool:
        """True if a value is computed from the kernel's arguments alone."""
        if isinstance(value, BlockArgument):
            return value.block is self._entry
        op = value.owner
        assert isinstance(op, Operation)
        if op.regions or isinstance(op, _NATURAL) or not is_side_effect_free(op):
            return False
        return all(map(self.value_is_of_launch, op.operands))

    def _symbol_is_of_launch(self, symbol: Symbol) -> bool:
        return isinstance(symbol, Scalar) and self.value_is_of_launch(symbol.value)

    # Signs and divisors ----------------------------------------------------------------------------------------------

    def natural_if(self, form: Polynomial) -> list[str] | None:
        """Return the conditions at a launch under which a number is not negative; None where it may be."""
        found: list[str] = []
        if any(number < 0 for _, number in form):
            for least in self._leasts(form):
                if (asked := self.natural_if(least)) is not None:
                    return asked
            # A difference of arguments has no sign of its own.
            if not self.is_of_launch(form) or (text := self.text(form)) is None:
                return None
            return [f"{text} >= 0"]
        for symbol in sorted(form.symbols, key=str):
            if (asked := self._symbol_natural_if(symbol)) is None:
                return None
            found += asked
        return found

    def _leasts(self, form: Polynomial) -> Iterator[Polynomial]:
        """Return the least that a number that counts down is: in the last turn of its loop, or in the last program."""
        for symbol in sorted(form.symbols, key=str):
            if (factor := form.coefficient(symbol)) is None or any(number > 0 for _, number in factor):
                continue
            if any(self._symbol_natural_if(each) != [] for each in factor.symbols):
                continue
            last = self._last(symbol, factor)
            if last is not None:
                yield form - factor * Polynomial.of(symbol) + last

    def _last(self, symbol: Symbol, factor: Polynomial) -> Polynomial | None:
        """The least that `factor * symbol` can be."""
        match symbol:
            case Counter(scf.ForOp() as loop):
                # In the last turn the steps that are done reach less than from the first to the last number.
                times = quotient(factor, self.sums.of(loop.step))
                return None if times is None else times * (self.sums.of(loop.ub) - self.sums.of(loop.lb) - 1)
            case Scalar(value) if isinstance(op := value.owner, tt.GetProgramIdOp):
                programs = [each for each in self._programs if each.axis == op.axis]
                return factor * (self.sums.of(programs[0].result) - 1) if programs else None
            case _:
                return None

    def divisor(self, form: Polynomial) -> int:
        """A number that divides all values; 0 for 0."""
        found = 0
        for product, number in form:
            for symbol, power in product:
                number *= self._divisors.get(symbol.value, 1) ** power if isinstance(symbol, Scalar) else 1
            found = gcd(found, number)
        return found

    def pointer_divisor(self, pointer: SSAValue) -> int:
        """Bytes that divide an address."""
        return self._divisors.get(pointer, 1)

    def _symbol_natural_if(self, symbol: Symbol) -> list[str] | None:
        match symbol:
            case Counter():
                return []
            case Scalar(BlockArgument() as argument) if argument.block is self._entry:
                if argument in self._of_host:
                    return []
                return None if (name := name_of(argument)) is None else [f"{name} >= 0"]
            case Scalar(value) if isinstance(value.owner, Operation):
                return self._result_natural_if(value.owner)
            case _:
                return None

    def _result_natural_if(self, op: Operation) -> list[str] | None:
        # Before the tensor, TMA would give 0, and the plain kernel what lies there: no index of a kernel means that.
        if isinstance(op, (*_NATURAL, tt.LoadOp)):
            return []
        if isinstance(op, _AS_DIVIDEND):
            return self.natural_if(self.sums.of(op.operands[0]))
        if not isinstance(op, _CHOICES):
            return None
        sides = [self.natural_if(self.sums.of(operand)) for operand in op.operands[-2:]]
        known = [side for side in sides if side is not None]
        if isinstance(op, upstream.MaxSIOp):
            return min(known, key=len, default=None)
        return [each for side in known for each in side] if len(known) == len(sides) else None

    # Text ------------------------------------------------------------------------------------------------------------

    def text(self, form: Polynomial) -> str | None:
        """A number that follows from the arguments as Python over their names; None where it can't be said."""
        terms: list[str] = []
        for product, number in sorted(form, key=_reading_order):
            factors = [self._symbol_text(symbol) for symbol, power in _sorted(product) for _ in range(power)]
            if None in factors:
                return None
            size = [str(abs(number))] if abs(number) != 1 or not factors else []
            body = " * ".join(size + [each for each in factors if each is not None])
            sign = ("-" if number < 0 else "") if not terms else ("- " if number < 0 else "+ ")
            terms.append(sign + body)
        return " ".join(terms) or "0"

    def factor_text(self, form: Polynomial) -> str | None:
        """The same in parentheses where a factor needs them."""
        text = self.text(form)
        return text if text is None or len(form.terms) < 2 else f"({text})"

    def _symbol_text(self, symbol: Symbol) -> str | None:
        if not isinstance(symbol, Scalar):
            return None
        if isinstance(symbol.value, BlockArgument):
            return self._of_host.get(symbol.value) or name_of(symbol.value)
        op = symbol.value.owner
        if not isinstance(op, Operation) or not _is_sayable(op):
            return None
        sides = [self.factor_text(self.sums.of(operand)) for operand in op.operands]
        if None in sides:
            return None
        if (sign := _SIGNS.get(type(op))) is not None:
            return f"({sides[0]} {sign} {sides[1]})"
        return f"{_CALLS[type(op)]}({sides[0]}, {sides[1]})"

    def said_if(self, form: Polynomial) -> list[str]:
        """Return the conditions under which the text of a number has its value: Python rounds quotients down."""
        found: list[str] = []
        for symbol in sorted(form.symbols, key=str):
            op = symbol.value.owner if isinstance(symbol, Scalar) else None
            if isinstance(op, Operation) and _is_sayable(op):
                for operand in op.operands:
                    inner = self.sums.of(operand)
                    found += self.said_if(inner)
                    if inner.number is None and (text := self.text(inner)) is not None:
                        found.append(f"{text} >= 0")
        return found


def name_of(argument: SSAValue) -> str | None:
    """The name of an argument where Python can say it."""
    name = argument.name_hint
    return name if name is not None and name.isidentifier() else None


def host_values(function: tt.FuncOp) -> dict[SSAValue, str]:
    """The arguments that are sizes of the grid or of a descriptor's tensor, and so not negative, with their text."""
    entry = function.body.blocks[0]
    attributes = function.arg_attrs.data if function.arg_attrs is not None else ()
    found: dict[SSAValue, str] = {}
    for argument, held in zip(entry.args, attributes, strict=False):
        if isinstance(text := held.data.get(HOST_VALUE), StringAttr):
            found[argument] = text.data
    for descriptor in descriptors_of(function):
        name, extents = name_of(descriptor.descriptor), descriptor.extents
        for number, extent in enumerate(extents if name is not None else ()):
            rank = len(extents) // 2
            found[extent] = f"{name}.shape[{number}]" if number < rank else f"{name}.strides[{number - rank}]"
    return found


def _is_sayable(op: Operation) -> bool:
    return type(op) in _SIGNS or type(op) in _CALLS


def _sorted(product: Monomial) -> list[tuple[Symbol, int]]:
    return sorted(product, key=lambda each: str(each[0]))


def _reading_order(term: tuple[Monomial, int]) -> tuple[bool, bool, str]:
    """Constants last, and a sum begins with what is added."""
    product, number = term
    return not product, number < 0, "*".join(str(symbol) for symbol, _ in _sorted(product))
