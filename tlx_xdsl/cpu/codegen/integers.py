"""Operations on integers that a processor traps on, that LLVM promises nothing about, or that it does one by one.

Results are those of an NVIDIA GPU, and so of the interpreter.
"""

from __future__ import annotations

from .builder import F32, F64, I32, Builder, Value, constant

# Divisions -----------------------------------------------------------------------------------------------------------


def divide_integers(b: Builder, opcode: str, x: Value, y: Value) -> Value:
    """A quotient or a remainder, with every bit set where the divisor is 0; the smallest number by -1 wraps around.

    `opcode` is `sdiv`, `udiv`, `srem`, `urem`, or with the quotient rounded another way `floor sdiv`, `ceil sdiv` or
    `ceil udiv`.
    """
    rounding, _, plain = opcode.rpartition(" ")
    element, signed = x.element, plain.startswith("s")
    zero, one, ones = constant(0, element), constant(1, element), constant(-1, element)
    by_zero = b.compare("icmp eq", y, zero)
    by_one = by_zero
    if signed:
        smallest = b.compare("icmp eq", x, constant(-1 << int(element[1:]) - 1, element))
        by_one = b.binary("or", by_zero, b.binary("and", smallest, b.compare("icmp eq", y, ones)))
    divisor = b.select(by_one, one, b.splat(y, by_one.lanes))
    result = _divide(b, plain, x, divisor)
    if rounding:
        rest = b.binary("sub", x, b.binary("mul", result, divisor))
        moved = b.compare("icmp ne", rest, zero)
        if signed:
            # A quotient was rounded up where it is negative, down where it is positive.
            negative = b.compare("icmp slt", b.binary("xor", x, divisor), zero)
            wanted = constant(rounding == "floor", "i1")
            moved = b.binary("and", moved, b.compare("icmp eq", negative, wanted))
        step = b.cast("zext", moved, element) if element != "i1" else moved
        result = b.binary("sub" if rounding == "floor" else "add", result, step)
    return b.select(by_zero, b.splat(ones, result.lanes), result)


def _divide(b: Builder, opcode: str, x: Value, y: Value) -> Value:
    """The same for a divisor that is not 0 and a quotient in range.

    Processors divide vectors of floats, not of integers. The quotient of two integers of `n` bits that is no integer is
    farther from the next one than `2**-n` times itself, so that rounding to more than `n` bits does not reach it.
    """
    x, y = b.aligned(x, y)
    width = int(x.element[1:])
    if x.lanes == 1 or width > 32 or y.text[0] != "%":
        return b.binary(opcode, x, y)
    kind = opcode[0]
    wide_x, wide_y = (b.resized(value, I32, signed=kind == "s") for value in (x, y))
    float_ = F32 if width <= 16 else F64
    number_x, number_y = (b.cast(f"{kind}itofp", value, float_) for value in (wide_x, wide_y))
    quotient = b.cast(f"fpto{kind}i", b.binary("fdiv", number_x, number_y), I32)
    if opcode.endswith("div"):
        return b.resized(quotient, x.element)
    return b.resized(b.binary("sub", wide_x, b.binary("mul", quotient, wide_y)), x.element)


# Shifts, products and sums -------------------------------------------------------------------------------------------


def shift(b: Builder, opcode: str, x: Value, amount: Value) -> Value:
    """`shl`, `lshr` or `ashr`; by the width or more (as an unsigned number) all bits are shifted out."""
    width = int(x.element[1:])
    inside = b.compare("icmp ult", amount, constant(width, x.element)) if width > 1 else None
    if opcode == "ashr":
        if inside is None:
            return x
        amount = b.select(inside, amount, constant(width - 1, x.element))
        return b.binary(opcode, x, amount)
    if inside is None:
        return b.binary("and", x, b.binary("xor", amount, constant(1, x.element)))
    shifted = b.binary(opcode, x, amount)
    return b.select(inside, shifted, constant(0, x.element, shifted.lanes))


def multiply_extended(b: Builder, x: Value, y: Value, *, signed: bool) -> tuple[Value, Value]:
    """The low and the high half of a product."""
    width = int(x.element[1:])
    wide_x, wide_y = (b.resized(value, f"i{2 * width}", signed=signed) for value in (x, y))
    product = b.binary("mul", wide_x, wide_y)
    high = b.resized(b.binary("lshr", product, constant(width, product.element)), x.element)
    return b.binary("mul", x, y), high


def add_extended(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """The sum, and whether it overflows as an unsigned number."""
    total = b.binary("add", x, y)
    return total, b.compare("icmp ult", total, x)
