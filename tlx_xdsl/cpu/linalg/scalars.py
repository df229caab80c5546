"""The scalars of structured values, as operations of `arith`.

An expression is computed once, right after the last of the values that it is made of: outside of the loops that it
does not depend on, and before every use. A division, which may not be made where the kernel does not make it, stays
before what it is computed for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, LocationAttr, i1, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.analysis.integers.functions import DIVISIONS
from tlx_xdsl.analysis.integers.polynomials import Monomial, Polynomial, Symbol
from tlx_xdsl.analysis.integers.symbols import Scalar
from tlx_xdsl.analysis.structure.values import Computed
from tlx_xdsl.dialects import arith

_SIGNED = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
_UNSIGNED = {"<": "ult", "<=": "ule", ">": "ugt", ">=": "uge", "==": "eq", "!=": "ne"}

_BINARY: dict[tuple[str, bool], Callable[[SSAValue, SSAValue], Operation]] = {
    ("truncdiv", True): upstream.DivSIOp,
    ("floordiv", False): upstream.DivUIOp,
    ("floordiv", True): upstream.FloorDivSIOp,
    ("ceildiv", True): upstream.CeilDivSIOp,
    ("truncmod", True): upstream.RemSIOp,
    ("mod", False): upstream.RemUIOp,
    ("shl", True): upstream.ShLIOp,
    ("shr", True): upstream.ShRSIOp,
    ("shr", False): upstream.ShRUIOp,
    ("and", True): upstream.AndIOp,
    ("or", True): upstream.OrIOp,
    ("xor", True): upstream.XOrIOp,
    ("min", True): upstream.MinSIOp,
    ("max", True): upstream.MaxSIOp,
    ("min", False): upstream.MinUIOp,
    ("max", False): upstream.MaxUIOp,
}
"""By the name of `analysis/integers/functions.py`, and whether it is signed."""

Site = Operation | Block


class Scalars:
    """Emits expressions into one function."""

    def __init__(self, function: Operation, wide: Attribute):
        """Numbers of 64 bits have the type `wide`: i64 or index."""
        self.wide = wide
        self._entry = function.regions[0].blocks[0]
        self._order: dict[Site, int] = {}
        for number, op in enumerate(function.walk()):
            self._order[op] = 2 * number
            for region in op.regions:
                for block in region.blocks:
                    self._order[block] = 2 * number + 1
        # A block begins after the operations of the blocks before it.
        for region in function.regions:
            for block in list(region.blocks)[1:]:
                if block.first_op is not None:
                    self._order[block] = self._order[block.first_op] - 1
        self._made: dict[tuple[Polynomial, int, Operation | None], SSAValue] = {}
        """By the operation as well for what stays before it."""
        self._functions: dict[tuple[Computed, Operation | None], SSAValue] = {}
        self._sites: dict[SSAValue, Site] = {}
        self._last: dict[Site, Operation] = {}
        self._location: LocationAttr | None = None
        self._anchor: Operation = function
        self._stays: dict[Polynomial, bool] = {}
        self._here: set[SSAValue] = set()

    def emit(self, form: Polynomial, bits: int, *, for_: Operation) -> SSAValue:
        """The value of an expression of so many bits; what is new gets the location of `for_`."""
        self._location, self._anchor = for_.location, for_
        return self._value(form, bits)

    def number(self, number: int, bits: int, *, for_: Operation) -> SSAValue:
        """A constant."""
        return self.emit(Polynomial.constant(number), bits, for_=for_)

    def rank(self, value: SSAValue) -> tuple[int, int]:
        """The order of definitions, by which values can be sorted."""
        return self._order.get(self._site(value), 0), value.index if isinstance(value, OpResult | BlockArgument) else 0

    def _type(self, bits: int) -> Attribute:
        return self.wide if bits == 64 else IntegerType(bits)

    def _value(self, form: Polynomial, bits: int) -> SSAValue:
        key = (form, bits, self._anchor if self._divides(form) else None)
        if (found := self._made.get(key)) is None:
            found = self._made[key] = self._computed(form, bits)
        return found

    def _divides(self, form: Polynomial) -> bool:
        """True if a division in the expression might be by 0."""
        if (found := self._stays.get(form)) is None:
            calls = [symbol for symbol in form.symbols if isinstance(symbol, Computed)]
            found = self._stays[form] = any(
                (symbol.function in DIVISIONS and not symbol.arguments[1].number)
                or any(self._divides(argument) for argument in symbol.arguments)
                for symbol in calls
            )
        return found

    def _computed(self, form: Polynomial, bits: int) -> SSAValue:
        if (number := form.number) is not None:
            return self._constant(number, bits)
        terms = sorted(form.terms.items(), key=lambda term: self._rank(term[0]))
        offset = form.offset
        plus = [self._product(product, number, bits) for product, number in terms if product and number > 0]
        minus = [self._product(product, -number, bits) for product, number in terms if product and number < 0]
        if not plus:
            plus, offset = [self._value(Polynomial.constant(offset), bits)], 0
        total = reduce(lambda a, b: self._insert(upstream.AddiOp(a, b)), plus)
        total = reduce(lambda a, b: self._insert(upstream.SubiOp(a, b)), minus, total)
        return self._insert(upstream.AddiOp(total, self._value(Polynomial.constant(offset), bits))) if offset else total

    def _product(self, product: Monomial, number: int, bits: int) -> SSAValue:
        symbols = sorted(product, key=lambda each: self._symbol_rank(each[0]))
        factors = [self._symbol(symbol, bits) for symbol, power in symbols for _ in range(power)]
        if number != 1:
            factors.append(self._value(Polynomial.constant(number), bits))
        return reduce(lambda a, b: self._insert(upstream.MuliOp(a, b)), factors)

    def _symbol(self, symbol: Symbol, bits: int) -> SSAValue:
        match symbol:
            case Scalar(value):
                if bits == 64 and value.type != self.wide:
                    return self._insert(upstream.IndexCastOp(value, self.wide))
                return value
            case Computed():
                key = (symbol, self._anchor if self._divides(Polynomial.of(symbol)) else None)
                if (found := self._functions.get(key)) is None:
                    found = self._functions[key] = self._function(symbol)
                return found
            case _:
                raise AssertionError(f"no scalar: {symbol}")

    def _function(self, symbol: Computed) -> SSAValue:
        """The value of a function; `bits` are those of the arguments, but of `trunc`, whose result has them."""
        name, arguments, bits = symbol.function, symbol.arguments, symbol.bits
        match name:
            case "sext" | "zext":
                return self._extended(self._value(arguments[0], bits), signed=name == "sext")
            case "trunc":
                value = self._value(arguments[0], 64)
                if isinstance(self.wide, IndexType):
                    return self._insert(upstream.IndexCastOp(value, IntegerType(bits)))
                return self._insert(arith.TruncIOp(value, IntegerType(bits)))
            case "select":
                condition = self._value(arguments[0], 1)
                return self._insert(arith.SelectOp(condition, *(self._value(each, bits) for each in arguments[1:])))
            case "not":
                return self._insert(upstream.XOrIOp(self._value(arguments[0], 1), self._constant(1, 1)))
            case _:
                left, right = (self._value(each, bits) for each in arguments)
        if name.startswith("compare "):
            predicates = _SIGNED if symbol.signed else _UNSIGNED
            return self._insert(arith.CmpiOp(predicates[name.removeprefix("compare ")], left, right))
        is_signed = symbol.signed or (name, False) not in _BINARY
        op = _BINARY[name, is_signed](left, right)
        if name in DIVISIONS and not arguments[1].number:
            return self._insert_here(op)
        return self._insert(op)

    def _extended(self, value: SSAValue, *, signed: bool) -> SSAValue:
        if isinstance(self.wide, IndexType):
            # xDSL has no `arith.index_castui`.
            number = value if signed or value.type == i64 else self._insert(arith.ExtUIOp(value, i64))
            return self._insert(upstream.IndexCastOp(number, self.wide))
        return self._insert((arith.ExtSIOp if signed else arith.ExtUIOp)(value, self.wide))

    # Places ----------------------------------------------------------------------------------------------------------

    def _rank(self, product: Monomial) -> tuple[int, tuple[tuple[int, str], ...]]:
        """Return where it stands in a sum: in the order in which the values are defined, constants last."""
        ranks = sorted(self._symbol_rank(symbol) for symbol, _ in product)
        return (0 if ranks else 1, tuple(ranks))

    def _symbol_rank(self, symbol: Symbol) -> tuple[int, str]:
        match symbol:
            case Scalar(value):
                owner = value.owner
                index = value.index if isinstance(value, BlockArgument) else 0
                return self._order.get(owner, 0), f"{index:06}"
            case Computed(function, arguments):
                inner = [self._symbol_rank(each) for form in arguments for product in form.terms for each, _ in product]
                return max(inner, default=(0, ""))[0], f"{function} {inner}"
            case _:
                return 0, ""

    def _site(self, value: SSAValue) -> Site:
        return self._sites.get(value) or value.owner

    def _constant(self, number: int, bits: int) -> SSAValue:
        type_ = i1 if bits == 1 else self._type(bits)
        if isinstance(type_, IntegerType):
            # As the signed number of these bits; a true i1 is -1.
            number = (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
        return self._insert(upstream.ConstantOp(IntegerAttr(number, type_)))  # pyright: ignore

    def _insert_here(self, op: Operation) -> SSAValue:
        """Insert an operation right before what it is computed for; what takes its result goes there, too."""
        assert self._location is not None
        op.location = self._location
        Rewriter.insert_op(op, InsertPoint.before(self._anchor))
        self._here.add(op.results[0])
        return op.results[0]

    def _insert(self, op: Operation) -> SSAValue:
        """Insert an operation after the last of its operands."""
        if not self._here.isdisjoint(op.operands):
            return self._insert_here(op)
        sites = [self._site(operand) for operand in op.operands]
        site: Site = max(sites, key=lambda each: self._order.get(each, -1), default=self._entry)
        assert self._location is not None
        op.location = self._location
        last = self._last.get(site)
        if last is not None:
            point = InsertPoint.after(last)
        elif isinstance(site, Block):
            first = site.first_op
            point = InsertPoint.at_end(site) if first is None else InsertPoint.before(first)
        else:
            point = InsertPoint.after(site)
        Rewriter.insert_op(op, point)
        self._last[site] = op
        self._sites[op.results[0]] = site
        return op.results[0]


def conjunction(forms: Sequence[Polynomial]) -> Polynomial:
    """Combine several conditions, at least one, by "and"."""
    return reduce(lambda a, b: Polynomial.of(Computed("and", (a, b), 1)), forms)
