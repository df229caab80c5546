"""Integer operations, minima and maxima give what the interpreter gives, also where a processor would trap."""

# covers: target.cpu

import numpy as np
import pytest
from snippets import evaluated
from xdsl.dialects import arith as upstream, test
from xdsl.dialects.builtin import IntegerType, f32, f64, i1

from tlx_xdsl.cpu.codegen.builder import constant
from tlx_xdsl.cpu.codegen.integers import add_extended, divide_integers, multiply_extended, shift
from tlx_xdsl.cpu.codegen.scalars import minmax
from tlx_xdsl.interpreter.ops import arith as interpreted

RNG = np.random.default_rng(20)
DIVISIONS = {
    "sdiv": upstream.DivSIOp, "udiv": upstream.DivUIOp, "srem": upstream.RemSIOp, "urem": upstream.RemUIOp,
    "floor sdiv": upstream.FloorDivSIOp, "ceil sdiv": upstream.CeilDivSIOp, "ceil udiv": upstream.CeilDivUIOp,
}  # fmt: skip
SHIFTS = {"shl": upstream.ShLIOp, "ashr": upstream.ShRSIOp, "lshr": upstream.ShRUIOp}


def operation(class_, type_):
    """An operation on two values of a type."""
    x, y = test.TestOp(result_types=[type_, type_]).results
    return class_(x, y)


def pairs(width):
    """Integers of all sizes, and each edge beside each other one."""
    dtype = np.dtype(f"i{width // 8}")
    info = np.iinfo(dtype)
    edges = np.array([0, 1, -1, 2, -2, 3, 7, -7, info.max, info.min, info.min + 1, info.max - 1, info.max // 2], dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(edges, edges))
    anything = np.frombuffer(RNG.bytes(2 * 4096 * dtype.itemsize), dtype).reshape(2, -1)
    small = anything >> RNG.integers(0, width, anything.shape).astype(dtype)
    return np.concatenate([x, anything[0], small[0]]), np.concatenate([y, small[1], small[1]])


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("opcode", DIVISIONS)
def test_divisions_do_not_trap(opcode, width, lanes):
    x, y = pairs(width)
    with np.errstate(all="ignore"):
        expected = interpreted.divide(operation(DIVISIONS[opcode], IntegerType(width)))(x, y)
    found = evaluated(lambda b, x, y: divide_integers(b, opcode, x, y), x.dtype, x, y, lanes=lanes)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("divisor", [0, 1, -1, 7, -12])
def test_a_constant_divides(divisor):
    x, _ = pairs(32)
    y = np.full_like(x, divisor)
    for opcode, class_ in DIVISIONS.items():
        with np.errstate(all="ignore"):
            expected = interpreted.divide(operation(class_, IntegerType(32)))(x, y)
        found = evaluated(
            lambda b, x, opcode=opcode: divide_integers(b, opcode, x, constant(divisor, "i32")), x.dtype, x
        )
        np.testing.assert_array_equal(found, expected)


def test_a_scalar_divides_a_vector():
    x, _ = pairs(32)

    def divided(b, x):
        return divide_integers(b, "srem", x, b.extract(x, 3))

    found = evaluated(divided, x.dtype, x[:16], lanes=16)
    expected = interpreted.divide(operation(upstream.RemSIOp, IntegerType(32)))(x[:16], np.full(16, x[3]))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("opcode", SHIFTS)
def test_long_shifts_leave_no_bits(opcode, width):
    x, _ = pairs(width)
    by = RNG.choice([0, 1, 2, width // 2, width - 1, width, width + 1, 2 * width, -1], x.size).astype(x.dtype)
    expected = interpreted.shift(operation(SHIFTS[opcode], IntegerType(width)))(x, by)
    np.testing.assert_array_equal(evaluated(lambda b, x, y: shift(b, opcode, x, y), x.dtype, x, by), expected)


@pytest.mark.parametrize("opcode", [*DIVISIONS, *SHIFTS])
def test_single_bits(opcode):
    x, y = (np.array(each, bool) for each in ([False, False, True, True], [False, True, False, True]))
    if opcode in SHIFTS:
        expected = interpreted.shift(operation(SHIFTS[opcode], i1))(x, y)
        found = evaluated(lambda b, x, y: shift(b, opcode, x, y), bool, x, y)
    else:
        # Divided by 1, or by -1, a bit stays, and has no remainder.
        expected = np.where(y, x & ("rem" not in opcode), True)
        found = evaluated(lambda b, x, y: divide_integers(b, opcode, x, y), bool, x, y)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [True, False])
def test_products_have_two_halves(width, signed):
    x, y = pairs(width)
    class_ = upstream.MulSIExtendedOp if signed else upstream.MulUIExtendedOp
    with np.errstate(all="ignore"):
        expected = interpreted.multiply_extended(operation(class_, IntegerType(width)))(x, y)
    for half in (0, 1):
        found = evaluated(lambda b, x, y, half=half: multiply_extended(b, x, y, signed=signed)[half], x.dtype, x, y)
        np.testing.assert_array_equal(found, expected[half])


def test_sums_overflow():
    x, y = pairs(32)
    total, overflow = interpreted.add_extended(operation(upstream.AddUIExtendedOp, IntegerType(32)))(x, y)
    np.testing.assert_array_equal(evaluated(lambda b, x, y: add_extended(b, x, y)[0], np.int32, x, y), total)
    np.testing.assert_array_equal(evaluated(lambda b, x, y: add_extended(b, x, y)[1], np.bool_, x, y), overflow)


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in ("maximumf", "maxnumf", "maxsi", "maxui", "minimumf", "minnumf", "minsi", "minui")
        for dtype in (("f4", "f8") if name.endswith("f") else ("i1", "i4", "i8"))
    ],
)
def test_minima_and_maxima(name, dtype, lanes):
    class_ = next(each for each in vars(upstream).values() if getattr(each, "name", None) == f"arith.{name}")
    if dtype[0] == "f":
        edges = np.array([0.0, -0.0, 1, -1, np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3.5], dtype)
        x, y = (grid.ravel() for grid in np.meshgrid(edges, edges))
        type_ = f32 if dtype == "f4" else f64
        expected = interpreted.floating(operation(class_, type_))(x, y)
    else:
        x, y = pairs(8 * int(dtype[1]))
        rule = interpreted.unsigned_extremum if name.endswith("ui") else interpreted.integer
        expected = rule(operation(class_, IntegerType(8 * int(dtype[1]))))(x, y)
    found = evaluated(lambda b, x, y: minmax(b, name, x, y), x.dtype, x, y, lanes=lanes)
    np.testing.assert_array_equal(found, expected)
    if dtype[0] == "f":
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[number], np.signbit(expected)[number])
