"""Instructions that compute, against numpy and exact arithmetic."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from tests.unit.ptx.snippets import each_thread
from tlx_xdsl.ptx import PtxError
from tlx_xdsl.ptx.arithmetic.floats import fma

pytestmark = pytest.mark.quick

WORDS = arrays(np.uint32, 32, elements=st.integers(0, 2**32 - 1))


@settings(max_examples=10, deadline=None)
@given(WORDS, WORDS)
def test_integers(a, b):
    signed = a.view(np.int32), b.view(np.int32)
    cases = {
        "add.s32": a + b, "sub.u32": a - b, "mul.lo.s32": a * b, "xor.b32": a ^ b,
        "max.s32": np.maximum(*signed).view(np.uint32), "min.u32": np.minimum(a, b),
        "mul.hi.u32": (a.astype(np.uint64) * b >> np.uint64(32)).astype(np.uint32),
    }  # fmt: skip
    for opcode, expected in cases.items():
        np.testing.assert_array_equal(each_thread(f"    {opcode} %r1, %r10, %r11;", a, b), expected, opcode)
    less = each_thread("    setp.lt.s32 %p1, %r10, %r11;\n    selp.b32 %r1, 1, 0, %p1;", a, b)
    np.testing.assert_array_equal(less, (signed[0] < signed[1]).astype(np.uint32))


def test_extrema_of_sizes_have_both_signs():
    # PTX ISA, "min": the sign bits of both are xored, unless the result is NaN. So stock clamps to one size.
    edges = np.float32([0.0, -0.0, 1.5, -1.5, 2.0, np.inf, -np.inf, np.nan])
    a, b = (edges[np.arange(32) * step % 8] for step in (1, 3))
    b[8:16] = -b[8:16]
    with np.errstate(invalid="ignore"):
        for name, size in (("min", np.fmin), ("max", np.fmax), ("min.NaN", np.minimum)):
            opcode = f"{name}.xorsign.abs.f32"
            found = each_thread(f"    {opcode} %r1, %r10, %r11;", a.view(np.uint32), b.view(np.uint32))
            expected = size(np.abs(a), np.abs(b)).astype(np.float32)
            expected = np.copysign(expected, np.where(np.signbit(a) != np.signbit(b), -1, 1).astype(np.float32))
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(found[numbers], expected[numbers].view(np.uint32), opcode)
            assert np.isnan(found[~numbers].view(np.float32)).all(), opcode


def test_sums_in_a_direction_that_flush_and_saturate():
    # So libdevice rounds, where subnormal numbers are zeros.
    tiny, one = np.float32(1e-40), np.float32(1)
    pairs = np.float32([(1, 2**-30), (-1, -(2**-30)), (1e-40, 1e-40), (-1e-40, 0.0), (0.75, 0.5), (-2, 1)])
    a, b = (np.resize(pairs[:, at], 32) for at in (0, 1))
    beyond = np.nextafter(one, np.float32(2))
    expected = {
        "add.rz.ftz.f32": [1, -1, 0.0, -0.0, 1.25, -1],
        "add.rp.ftz.f32": [beyond, -1, 0.0, -0.0, 1.25, -1],
        "add.rm.ftz.sat.f32": [1, 0, 0, 0, 1, 0],
        "add.rm.f32": [1, -beyond, 2 * tiny, -tiny, 1.25, -1],
    }
    for opcode, numbers in expected.items():
        found = each_thread(f"    {opcode} %r1, %r10, %r11;", a.view(np.uint32), b.view(np.uint32)).view(np.float32)
        np.testing.assert_array_equal(found, np.resize(np.float32(numbers), 32), opcode)
        fused = opcode.replace("add", "fma")
        found = each_thread(
            f"    mov.b32 %r12, 0x3F800000;\n    {fused} %r1, %r10, %r12, %r11;", a.view(np.uint32), b.view(np.uint32)
        ).view(np.float32)
        np.testing.assert_array_equal(found, np.resize(np.float32(numbers), 32), fused)


def test_shifts_by_more_than_the_width():
    a, by = np.full(32, 0x80000001, np.uint32), np.arange(20, 52, dtype=np.uint32)
    left = each_thread("    shl.b32 %r1, %r10, %r11;", a, by)
    right = each_thread("    shr.s32 %r1, %r10, %r11;", a, by)
    assert left[by >= 32].any() == 0
    assert (right[by >= 31] == 0xFFFFFFFF).all()


FLOATS = np.resize(np.float32([0.0, -0.0, 1.5, -1.5, np.nan, np.inf, -np.inf, 1e-40]), 32)


@pytest.mark.parametrize("suffix", ["", ".NaN", ".ftz"])
def test_zeros_have_an_order(suffix):
    """-0 lies below +0 (PTX ISA, "max"), in whatever place of a vector, where numpy takes any of the two."""
    for shift in range(8):
        a, b = FLOATS, np.roll(FLOATS, shift)
        zeros = (a == 0) & (b == 0)
        high = each_thread(f"    max{suffix}.f32 %r1, %r10, %r11;", a.view(np.uint32), b.view(np.uint32))
        low = each_thread(f"    min{suffix}.f32 %r1, %r10, %r11;", a.view(np.uint32), b.view(np.uint32))
        assert (np.signbit(high.view(np.float32))[zeros] == (np.signbit(a) & np.signbit(b))[zeros]).all()
        assert (np.signbit(low.view(np.float32))[zeros] == (np.signbit(a) | np.signbit(b))[zeros]).all()


def test_the_extremum_of_sizes_has_the_product_of_the_signs():
    a, b = FLOATS, np.roll(FLOATS, 3)
    found = each_thread("    min.xorsign.abs.f32 %r1, %r10, %r11;", a.view(np.uint32), b.view(np.uint32))
    size = np.fmin(np.abs(a), np.abs(b))
    expected = np.where(np.signbit(a) ^ np.signbit(b), -size, size)
    np.testing.assert_array_equal(found, expected.view(np.uint32))


def test_sums_of_a_warp_wrap_around():
    a = np.full(32, 0x7FFFFFF0, np.uint32)
    for opcode in ("redux.sync.add.s32", "redux.sync.add.u32"):
        found = each_thread(f"    {opcode} %r1, %r10, -1;", a)
        assert (found == np.uint32((0x7FFFFFF0 * 32) % 2**32)).all()


def exact_fma(a: float, b: float, c: float) -> np.float32:
    """One rounding to nearest even, from the exact value."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    near = np.float32(float(exact))
    around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    gaps = [(abs(Fraction(float(each)) - exact), int(each.view(np.uint32)) & 1, each) for each in around]
    return min(gaps, key=lambda gap: gap[:2])[2]


FINITE = st.floats(-(2.0**40), 2.0**40, width=32)


@settings(max_examples=200, deadline=None)
@given(FINITE, FINITE, FINITE)
def test_fma_rounds_once(a, b, c):
    found = fma(*(np.array([each], np.float32) for each in (a, b, c)))[0]
    expected = exact_fma(a, b, c)
    assert found == expected


def test_fma_where_f64_makes_a_tie():
    """1 + 2**-24 is a tie of f32; what decides it is below the last bit of f64."""
    a = np.array([1 + 2**-12], np.float32)
    c = np.array([-(2.0**-60)], np.float32)
    found = fma(a, a, c)[0]
    assert found == exact_fma(float(a[0]), float(a[0]), float(c[0]))


def test_flushing():
    tiny = np.full(32, 1e-40, np.float32)
    kept = each_thread("    add.rn.f32 %r1, %r10, %r10;", tiny, dtype=np.float32)
    flushed = each_thread("    add.rn.ftz.f32 %r1, %r10, %r10;", tiny, dtype=np.float32)
    assert (kept == np.float32(2) * tiny).all()
    assert (flushed == 0).all()


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_halves(name):
    dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}[name]
    high, low = np.linspace(-3, 3, 32, dtype=np.float32), np.linspace(60000, 1e-9, 32, dtype=np.float32)
    found = each_thread(f"    cvt.rn.{name}x2.f32 %r1, %r10, %r11;", high, low).view(dtype).reshape(-1, 2)
    np.testing.assert_array_equal(found[:, 0], low.astype(dtype))
    np.testing.assert_array_equal(found[:, 1], high.astype(dtype))


@pytest.mark.parametrize(
    ("opcode", "function", "error"),
    [
        ("ex2.approx.ftz.f32", np.exp2, 2**-22),
        ("lg2.approx.f32", np.log2, 2**-21),
        ("rcp.approx.ftz.f32", np.reciprocal, 2**-22),
        ("rsqrt.approx.f32", lambda x: 1 / np.sqrt(x), 2**-22),
        ("sqrt.rn.f32", np.sqrt, 2**-24),
        ("tanh.approx.f32", np.tanh, 2**-11),
    ],
)
def test_approximations_are_within_their_error(opcode, function, error):
    x = np.linspace(0.5, 20, 32, dtype=np.float32)
    found = each_thread(f"    {opcode} %r1, %r10;", x, dtype=np.float32)
    np.testing.assert_allclose(found, function(x.astype(np.float64)), rtol=error)


def test_a_guard_keeps_what_was_there():
    body = """
    mov.b32 %r1, 7;
    setp.gt.u32 %p1, %r0, 15;
    @%p1 add.s32 %r1, %r0, 100;"""
    expected = np.where(np.arange(32) > 15, np.arange(32) + 100, 7)
    np.testing.assert_array_equal(each_thread(body), expected)


def test_sums_of_two_words():
    """Carries, borrows, and the product of one word with another added to two."""
    rng = np.random.default_rng(0)
    a, b, c, d = rng.integers(0, 2**32, (4, 32), dtype=np.uint64).astype(np.uint32)
    a[:8], b[:4], c[:8] = 2**32 - 1, 2**32 - 1, [0, 1, 2, 2**32 - 1, 0, 1, 2, 2**32 - 1]
    first, second = (low.astype(object) + high.astype(object) * 2**32 for low, high in ((a, b), (c, d)))
    cases = {
        "add.cc.u32 %r1, %r10, %r12;": first + second,
        "add.cc.u32 %r2, %r10, %r12;\n    addc.u32 %r1, %r11, %r13;": first + second >> 32,
        "sub.cc.s32 %r2, %r10, %r12;\n    subc.s32 %r1, %r11, %r13;": first - second >> 32,
        "mad.lo.cc.u32 %r2, %r10, %r11, %r12;\n    madc.hi.u32 %r1, %r10, %r11, %r13;": (
            a.astype(object) * b.astype(object) + second >> 32
        ),
    }
    for body, expected in cases.items():
        found = each_thread(f"    {body}", a, b, c, d)
        np.testing.assert_array_equal(found, [int(each) & 0xFFFFFFFF for each in expected], body)


def test_classes_of_numbers():
    values = np.array([0, 1, -2, np.inf, np.nan, 1e-40, -1e-40, -np.inf] * 4, np.float32)
    finite, normal = np.isfinite(values), np.abs(values) > 1e-38
    classes = {
        "finite": finite, "infinite": np.isinf(values), "number": ~np.isnan(values), "notanumber": np.isnan(values),
        "normal": finite & normal, "subnormal": finite & ~normal & (values != 0),
    }  # fmt: skip
    for name, expected in classes.items():
        found = each_thread(f"    testp.{name}.f32 %p1, %r10;\n    selp.b32 %r1, 1, 0, %p1;", values.view(np.uint32))
        np.testing.assert_array_equal(found, expected, name)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_comparisons_of_halves(name):
    """PTX ISA, "set": 1.0, or all bits of a half, where it holds; `nan` asks whether one of the two is NaN."""
    dtype = np.dtype(np.float16 if name == "f16" else ml_dtypes.bfloat16)
    edges = np.array([0.0, -0.0, 1.0, -2.0, np.inf, np.nan, 3.0, 1.0], dtype)
    a, b = (edges[np.arange(64) * step // 8 % 8] for step in (8, 1))
    words = a.view(np.uint32), b.view(np.uint32)
    unordered, one = np.isnan(a) | np.isnan(b), dtype.type(1).view(np.uint16)
    with np.errstate(invalid="ignore"):
        holds = {"nan": unordered, "num": ~unordered, "lt": a < b, "geu": (a >= b) | unordered, "eq": a == b}
    for comparison, expected in holds.items():
        for result, true in ((f"{name}x2", one), ("u32", np.uint16(0xFFFF)), ("s32", np.uint16(0xFFFF))):
            opcode = f"set.{comparison}.{result}.{name}x2"
            found = each_thread(f"    {opcode} %r1, %r10, %r11;", *words).view(np.uint16)
            np.testing.assert_array_equal(found, np.where(expected, true, 0), opcode)


def test_comparisons_that_set_a_word():
    a, b = np.float32([1.0, 2.0, np.nan, -1e-40] * 8), np.float32([1.0, 1.0, 0.0, 0.0] * 8)
    cases = {
        "set.lt.u32.f32 %r1, %r10, %r11;": [0, 0, 0, 0xFFFFFFFF],
        "set.lt.ftz.s32.f32 %r1, %r10, %r11;": [0, 0, 0, 0],
        "set.equ.f32.f32 %r1, %r10, %r11;": [0x3F800000, 0, 0x3F800000, 0],
        "set.gt.u32.s32 %r1, %r10, %r11;": [0, 0xFFFFFFFF, 0xFFFFFFFF, 0],
        "setp.lt.u32 %p1, %r0, 2;\n    set.ge.xor.u32.f32 %r1, %r10, %r11, %p1;": None,
    }
    for text, expected in cases.items():
        found = each_thread(f"    {text}", a.view(np.uint32), b.view(np.uint32))
        with np.errstate(invalid="ignore"):
            wanted = np.where((a >= b) ^ (np.arange(32) < 2), 0xFFFFFFFF, 0)
        np.testing.assert_array_equal(found, wanted if expected is None else expected * 8, text)


def test_one_predicate_for_both_halves():
    a, b = np.arange(64, dtype=np.float16), np.float16(40) * np.ones(64, np.float16)
    text = "setp.lt.u32 %p1, %r0, 30;\n    set.lt.and.u32.f16x2 %r1, %r10, %r11, %p1;"
    found = each_thread(f"    {text}", a.view(np.uint32), b.view(np.uint32)).view(np.uint16)
    np.testing.assert_array_equal(found, np.where((a < 40) & (np.arange(64) < 60), 0xFFFF, 0))


def test_a_comparison_that_sets_no_such_type():
    with pytest.raises(PtxError, match="is not known"):
        each_thread("    set.lt.f32.f16x2 %r1, %r10, %r11;", *(np.zeros(32, np.uint32),) * 2)
