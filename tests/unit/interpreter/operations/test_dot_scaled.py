"""`tl.dot_scaled` by value: all pairs of formats, packed either way, scales on both sides, one, or none.

The reference has tables of its own: it knows a number by its bits (OCP Microscaling Formats 1.0), and rounds with
numpy. Numbers and scales come from few bits, so all products and sums are exact, and results must be equal.
"""

# covers: tl.matrix, tt.dot

import itertools

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl

M, N, K = 16, 16, 64


def eight_bits(exponent_bits: int, bias: int) -> np.ndarray:
    """The numbers of all bytes: a sign, an exponent, a mantissa."""
    mantissa_bits = 7 - exponent_bits
    codes = np.arange(256)
    exponent, mantissa = (codes & 127) >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    ones = 1.0 * mantissa / (1 << mantissa_bits)
    sizes = np.where(exponent == 0, ones * 2.0 ** (1 - bias), (1 + ones) * 2.0 ** (exponent - bias))
    return np.where(codes & 128, -sizes, sizes)


TABLES = {
    "e2m1": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]),
    "e4m3": eight_bits(4, 7),
    "e5m2": eight_bits(5, 15),
}
WHOLE = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16}


def operand(rng, kind: str, rows: int, packs_rows: bool) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of `rows` x K as a kernel gets it, and its numbers: small ones, so that sums are exact in f32."""
    if kind in WHOLE:
        numbers = rng.integers(-8, 9, (rows, K)) / 4.0
        return numbers.astype(WHOLE[kind]), numbers
    table = TABLES[kind]
    usable = np.flatnonzero((np.abs(table) <= 4) & ((np.abs(table) >= 0.5) | (table == 0)))
    codes = rng.choice(usable, (rows, K)).astype(np.uint8)
    if kind != "e2m1":
        return codes, table[codes]
    pairs = codes.reshape(rows // 2, 2, K) if packs_rows else codes.reshape(rows, K // 2, 2)
    low, high = (pairs[:, 0], pairs[:, 1]) if packs_rows else (pairs[..., 0], pairs[..., 1])
    return low | high << 4, table[codes]


@tlx_xdsl.jit
def product(
    a_ptr, b_ptr, a_scale, b_scale, out,
    A: tl.constexpr, B: tl.constexpr, A_ROWS: tl.constexpr, A_COLS: tl.constexpr, B_ROWS: tl.constexpr,
    B_COLS: tl.constexpr, A_K: tl.constexpr, B_K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    a = tl.load(a_ptr + tl.arange(0, A_ROWS)[:, None] * A_COLS + tl.arange(0, A_COLS)[None, :])
    b = tl.load(b_ptr + tl.arange(0, B_ROWS)[:, None] * B_COLS + tl.arange(0, B_COLS)[None, :])
    of_a = None
    if a_scale is not None:
        of_a = tl.load(a_scale + tl.arange(0, M)[:, None] * G + tl.arange(0, G)[None, :])
    of_b = None
    if b_scale is not None:
        of_b = tl.load(b_scale + tl.arange(0, N)[:, None] * G + tl.arange(0, G)[None, :])
    c = tl.dot_scaled(a, of_a, A, b, of_b, B, lhs_k_pack=A_K, rhs_k_pack=B_K)
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], c)


def run(left, right, kinds, scales=(None, None), k_packs=(True, True)) -> np.ndarray:
    """The product of M x K and N x K; `right` is transposed here, and so is the way in which it is packed."""
    a, b = np.ascontiguousarray(left), np.ascontiguousarray(right.T)
    out = np.full((M, N), np.nan, np.float32)
    tlx_xdsl.interpret(
        product, 1, a.ravel(), b.ravel(), *(None if each is None else each.ravel() for each in scales), out.ravel(),
        *kinds, *a.shape, *b.shape, *k_packs, M, N, K // 32, target="sm_100a", jobs=1,
    )  # fmt: skip
    return out


def factors(scale: np.ndarray | None) -> np.ndarray | float:
    """Return the numbers that scales are, one for each element along K: an exponent with a bias of 127."""
    return 1.0 if scale is None else np.repeat(2.0 ** (scale.astype(np.float64) - 127), 32, 1)


SMALL = list(TABLES)
BOTH, LEFT, RIGHT, NONE = (True, True), (True, False), (False, True), (False, False)
CASES = [
    *((lhs, rhs, scaled) for lhs in SMALL for rhs in SMALL for scaled in (BOTH, LEFT, RIGHT)),
    *((lhs, rhs, LEFT) for lhs in SMALL for rhs in WHOLE),
    *((lhs, rhs, RIGHT) for lhs in WHOLE for rhs in SMALL),
    ("e2m1", "bf16", NONE),
    ("fp16", "e5m2", NONE),
]


@pytest.mark.parametrize(("lhs", "rhs", "scaled"), CASES)
def test_all_pairs_of_formats(lhs, rhs, scaled) -> None:
    """Numbers of 4 bits are packed in pairs along K, or along the rows of A and the columns of B."""
    rng = np.random.default_rng(0)
    for k_packs in itertools.product({True, lhs != "e2m1"}, {True, rhs != "e2m1"}):
        (a, x), (b, y) = operand(rng, lhs, M, not k_packs[0]), operand(rng, rhs, N, not k_packs[1])
        scales = [
            rng.integers(124, 131, (rows, K // 32)).astype(np.uint8) if has else None
            for rows, has in zip((M, N), scaled, strict=True)
        ]
        expected = (x * factors(scales[0])) @ (y * factors(scales[1])).T
        np.testing.assert_array_equal(run(a, b, (lhs, rhs), scales, k_packs), expected)


def test_a_scale_of_255_makes_its_group_nan() -> None:
    rng = np.random.default_rng(1)
    (a, x), (b, y) = operand(rng, "e4m3", M, False), operand(rng, "e5m2", N, False)
    scale = np.full((M, K // 32), 127, np.uint8)
    scale[3, 1] = 255
    expected = x @ y.T
    expected[3] = np.nan
    np.testing.assert_array_equal(run(a, b, ("e4m3", "e5m2"), (scale, None)), expected)


@pytest.mark.parametrize("kind", ["e4m3", "e5m2"])
def test_bytes_that_are_no_finite_numbers(kind) -> None:
    """e4m3 has NaN only, for two bytes; e5m2 has infinities, too."""
    a, b = np.zeros((M, K), np.uint8), np.zeros((N, K), np.float16)
    b[0, 0] = 1
    special = {"e4m3": {0x7F: np.nan, 0xFF: np.nan}, "e5m2": {0x7C: np.inf, 0xFC: -np.inf, 0x7D: np.nan, 0xFF: np.nan}}
    a[: len(special[kind]), 0] = list(special[kind])
    found = run(a, b, (kind, "fp16"))[: len(special[kind]), 0]
    np.testing.assert_array_equal(found, list(special[kind].values()))


def test_an_fp16_operand_makes_fp16_of_the_scaled_ones() -> None:
    """Upstream Triton takes such products apart: numbers, scales and what they give together are fp16."""
    codes, scale = np.zeros((M, K), np.uint8), np.full((M, K // 32), 127, np.uint8)
    other, whole = np.zeros((N, K), np.float16), np.zeros((N, K), ml_dtypes.bfloat16)
    other[0, 0] = whole[0, 0] = 1
    one = int(np.flatnonzero(TABLES["e5m2"] == 1)[0])
    # The scale 2**16 is infinite, and 0 times that is NaN; 2**-25 is 0; 1.75 * 2**-24 is rounded, 57344 * 2 infinite.
    codes[:5, 0] = [one, one, one, one + 3, 0x7B]
    scale[:5, 0] = [127 + 16, 127 - 24, 127 - 25, 127 - 24, 128]
    exact = TABLES["e5m2"][codes[:5, 0]] * 2.0 ** (scale[:5, 0].astype(np.float64) - 127)
    found = run(codes, other, ("e5m2", "fp16"), (scale, None))[:5, 0]
    np.testing.assert_array_equal(found, [np.nan, 2.0**-24, 0, 2.0**-23, np.inf])
    np.testing.assert_array_equal(run(codes, whole, ("e5m2", "bf16"), (scale, None))[:5, 0], exact)


def test_a_scale_of_0_is_the_least_number() -> None:
    codes, scale = np.zeros((M, K), np.uint8), np.zeros((M, K // 32), np.uint8)
    other = np.zeros((N, K), ml_dtypes.bfloat16)
    codes[0, 0], other[0, 0] = 7, 2.0**120
    assert run(codes[:, : K // 2], other, ("e2m1", "bf16"), (scale, None))[0, 0] == 6 * 2.0**-7
