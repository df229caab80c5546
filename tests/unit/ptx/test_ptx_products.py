"""Products of tensor cores: what is truncated, to which exponent, and how the sum is rounded."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tlx_xdsl.ptx.arithmetic.products import multiply, multiply_as_f16

F4, F2 = np.dtype(np.float32), np.dtype(np.float16)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)


def dot(a, b, c=0.0, dtype=np.float16, result=F4, **options):
    """One sum of products."""
    left, right = np.array([a]).astype(dtype), np.array([b]).astype(dtype).T
    return float(multiply(left, right, np.array([[c]], result), result, **options)[0, 0])


def parts(value, count):
    """Numbers whose products with 1 are `value` each, and which f16 holds."""
    return [2.0**-10] * count, [value * 2.0**10] * count


def test_products_below_the_25th_bit_are_lost():
    a, b = parts(2.0**-25, 4)
    assert dot([1, *a], [1, *b]) == 1 + 2.0**-23
    a, b = parts(2.0**-26, 8)
    assert dot([1, *a], [1, *b]) == 1
    a, b = parts(3 * 2.0**-26, 8)
    assert dot([1, *a], [1, *b]) == 1 + 2.0**-22, "truncated to 2**-25 each"
    assert dot([1, *a], [1, *(-x for x in b)]) == 1 - 2.0**-22, "towards zero"


def test_the_exponents_are_added_not_that_of_the_product_taken():
    """1.5 * 1.5 is above 2, and counts as 2**0."""
    a, b = parts(2.0**-25, 8)
    assert dot([1.5, *a], [1.5, *b]) == 2.25 + 2.0**-22
    assert dot([2, *a], [1, *b]) == 2


def test_the_accumulator_sets_the_exponent_too():
    a, b = parts(2.0**-15, 8)
    assert dot(a, b, 2.0**10) == 2.0**10 + 2.0**-12
    a, b = parts(2.0**-16, 16)
    assert dot(a, b, 2.0**10) == 2.0**10
    assert dot([1], [1], 2.0**-25) == 1
    assert dot([1], [-1], 1 + 2.0**-23) == 2.0**-23


def test_zeros_have_no_exponent():
    a, b = parts(2.0**-15, 1)
    assert dot([0, *a], [2.0**15, *b]) == 2.0**-15
    assert dot([0], [1], 2.0**-140) == 2.0**-140
    assert dot([0, 0], [1, 0]) == 0


def test_the_sum_is_truncated():
    a, b = parts(2.0**-25, 7)
    assert dot([1, *a], [1, *b]) == 1 + 2.0**-23
    assert dot([-1, *a], [1, *(-x for x in b)]) == -1 - 2.0**-23


def test_eight_bits_have_13():
    for dtype in (E4M3, E5M2):
        assert dot([1, 2.0**-6], [1, 2.0**-7], dtype=dtype) == 1 + 2.0**-13
        assert dot([1, 2.0**-7], [1, 2.0**-7], dtype=dtype) == 1
        assert dot([1] * 3, [1, 1, 1], 2.0**-13, dtype=dtype) == 3, "13 bits of the result"
        assert dot([0], [0], 1 + 2.0**-20, dtype=dtype) == 1


def test_eight_bits_have_25_in_the_fifth_generation():
    """The models that were published of a B200 have 2 bits below those of f32 where that of an H100 lacks 10."""
    small = [1.0, *[2.0**-9] * 2], [1.0, *[2.0**-9] * 2]
    assert dot(*small, dtype=E4M3) == 1
    assert dot(*small, dtype=E4M3, is_fifth=True) == 1 + 2.0**-17
    tiny = [2.0**4, *[2.0**-9] * 32], [2.0**4, *[2.0**-9] * 32]
    assert dot(*tiny, dtype=E4M3, is_fifth=True) == 2.0**8, "each is below 2**(8 - 25)"
    assert dot([1.0], [1.0], dtype=np.float16, is_fifth=True) == dot([1.0], [1.0])


def test_accumulators_of_16_bits_are_rounded_to_nearest_even():
    for value, expected in ((1.0, 0), (2.0, 2.0**-10), (3.0, 2.0**-9), (0.75, 0)):
        a, b = parts(value * 2.0**-12, 2)
        assert dot([1, *a], [1, *b], result=F2) == 1 + expected
    assert dot([200], [400], result=F2) == math.inf


def test_tf32_has_no_low_bits():
    assert dot([1 + 2.0**-10 + 2.0**-12], [1], dtype=np.float32) == 1 + 2.0**-10


def test_infinities_and_nan():
    inf, nan = math.inf, math.nan
    assert dot([inf, 1], [1, 1]) == inf
    assert dot([1], [1], -inf) == -inf
    for found in (
        dot([inf, inf], [1, -1]),
        dot([inf], [0]),
        dot([nan], [0]),
        dot([1], [1], nan),
        dot([inf], [1], -inf),
    ):
        assert math.isnan(found)
    a, b = np.full((2, 16), 1, F2), np.full((16, 2), 1, F2)
    a[0, 3] = nan
    found = multiply(a, b, None, F4)
    assert (found[0].view(np.uint32) == 0x7FFFFFFF).all()
    assert (found[1] == 16).all()


def test_integers_wrap():
    a, b = np.full((1, 4), -128, np.int8), np.full((4, 1), 255, np.uint8)
    c = np.full((1, 1), -(2**31), np.int32)
    assert multiply(a, b, c, np.dtype(np.int32))[0, 0] == 2**31 - 4 * 128 * 255
    assert multiply(a, b, None, np.dtype(np.int32))[0, 0] == -4 * 128 * 255


def test_mma_of_eight_bits_is_two_products_of_f16_and_an_addition():
    a = np.array([[1, 2.0**-6, 1, 0]]).astype(E4M3)
    b = np.array([[1, 2.0**-7, 2, 0]]).T.astype(E4M3)
    c = np.array([[2.0**-23]], F4)
    found = multiply_as_f16(a, b, c, F4)[0, 0]
    assert found == np.float32(3 + 2.0**-13) + c[0, 0], "not 13 bits"
    # The first product is rounded before the second: 0 and 1 of each four, then 2 and 3.
    a = np.array([[1, 2.0**-6, 2.0**-6, 0]]).astype(E4M3)
    b = np.array([[1, 2.0**-6, 2.0**-6, 0]]).T.astype(E4M3)
    assert multiply_as_f16(a, b, np.zeros((1, 1), F2), F2)[0, 0] == 1, "two halves of a unit, each lost"


# Random numbers ------------------------------------------------------------------------------------------------------


def exactly(a, b, c, bits):
    """The rule, in fractions."""
    numbers = [(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    exponents = [math.frexp(x)[1] + math.frexp(y)[1] - 2 for x, y in numbers if x and y]
    exponents += [math.frexp(c)[1] - 1] if c else []
    if not exponents:
        return 0.0
    unit = Fraction(2) ** (max(exponents) - bits)
    terms = [Fraction(x) * Fraction(y) for x, y in numbers] + [Fraction(c)]
    total = sum(int(abs(term) / unit) * (1 if term > 0 else -1) for term in terms) * unit
    if not total:
        return 0.0
    digits = 23 if bits == 25 else 13
    exponent = max(math.floor(math.log2(abs(total))), -126)
    while abs(total) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(total) < Fraction(2) ** exponent and exponent > -126:
        exponent -= 1
    last = Fraction(2) ** (exponent - digits)
    return float(int(abs(total) / last) * last * (1 if total > 0 else -1))


RANGES = {F2: (-24, 14), np.dtype(ml_dtypes.bfloat16): (-70, 60), E4M3: (-9, 7), E5M2: (-16, 14), F4: (-75, 60)}


@pytest.mark.parametrize("spread", [2, 8, 200])
@pytest.mark.parametrize("dtype", RANGES, ids=str)
def test_random_numbers_follow_the_rule(dtype, spread):
    rng = np.random.default_rng([spread, dtype.itemsize, *str(dtype).encode()])
    m, n, k = (40, 24, 32 // dtype.itemsize) if volume.is_full() else (6, 8, 32 // dtype.itemsize)
    low, high = RANGES[dtype]
    low, high = max(low, -spread), min(high, spread)

    def numbers(*shape, scale=1):
        found = rng.standard_normal(shape) * 2.0 ** rng.integers(scale * low, scale * high, shape, endpoint=True)
        found[rng.random(shape) < 0.1] = 0
        return found

    with np.errstate(over="ignore"):
        a, b = (np.clip(numbers(*shape), -400, 400) if dtype == E4M3 else numbers(*shape) for shape in ((m, k), (k, n)))
    a, b, c = a.astype(dtype), b.astype(dtype), numbers(m, n).astype(F4)
    if dtype == F4:
        a, b = (np.ascontiguousarray(each.view(np.uint32) & 0xFFFFE000).view(F4) for each in (a, b))
    a, b = (np.where(np.isfinite(each.astype(F4)), each, dtype.type(1)) for each in (a, b))
    found = multiply(a, b, c, F4)
    bits = 13 if dtype.itemsize == 1 else 25
    expected = [[exactly(a[i], b[:, j], float(c[i, j]), bits) for j in range(n)] for i in range(m)]
    np.testing.assert_array_equal(found, np.array(expected))
