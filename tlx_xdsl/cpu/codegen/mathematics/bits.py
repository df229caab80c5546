"""Functions of integers: counts of bits, absolute values and powers."""

from __future__ import annotations

from ..builder import Builder, Value, constant, mangle
from ..host import Features
from ..integers import shift


def absi(b: Builder, _features: Features, x: Value) -> Value:
    """The smallest number stays as it is."""
    zero = constant(0, x.element, x.lanes)
    return b.select(b.compare("icmp slt", x, zero), b.binary("sub", zero, x), x)


def ctlz(b: Builder, _features: Features, x: Value) -> Value:
    """Zeros above the highest bit that is set; for 0 all bits."""
    return _counted(b, "llvm.ctlz", x)


def cttz(b: Builder, _features: Features, x: Value) -> Value:
    """Zeros below the lowest bit that is set; for 0 all bits."""
    return _counted(b, "llvm.cttz", x)


def _counted(b: Builder, name: str, x: Value) -> Value:
    # The second operand says whether 0 gives poison.
    found = b.call(f"{name}.{mangle(x)}", x, x, Value("false", "i1"))
    assert found is not None
    return found


def ctpop(b: Builder, _features: Features, x: Value) -> Value:
    """Bits that are set."""
    return b.intrinsic("llvm.ctpop", x)


def ipowi(b: Builder, _features: Features, base: Value, power: Value) -> Value:
    """An integer to the power of an integer, which wraps around; a negative power rounds towards zero."""
    base, power = b.aligned(base, power)
    zero, one = (constant(value, base.element, base.lanes) for value in (0, 1))
    result, square = one, base
    for bit in range(int(base.element[1:]) - 1):
        taken = b.binary("and", shift(b, "lshr", power, constant(bit, base.element)), one)
        factor = b.select(b.compare("icmp ne", taken, zero), square, one)
        result = b.binary("mul", result, factor)
        square = b.binary("mul", square, square)
    odd = b.compare("icmp ne", b.binary("and", power, one), zero)
    minus_one = b.compare("icmp eq", base, constant(-1, base.element))
    alternating = b.select(b.binary("and", minus_one, odd), base, one)
    unit = b.binary("or", minus_one, b.compare("icmp eq", base, one))
    inverse = b.select(unit, alternating, zero)
    return b.select(b.compare("icmp slt", power, zero), inverse, result)
