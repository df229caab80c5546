"""Straight lines of PTX against Python's integers and exact fractions, thread by thread."""

from __future__ import annotations

import struct
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tlx_xdsl.interpreter.ptx import Program, UnknownInstruction

RNG = np.random.default_rng(7)
COUNT = 200
EDGES = np.array([0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFF, 0x100], np.uint32)


def words(bits: int = 32) -> np.ndarray:
    """Random bits, and the numbers at the edges."""
    values = RNG.integers(0, 1 << bits, COUNT, np.uint64)
    values[: len(EDGES)] = EDGES
    RNG.shuffle(values)
    return values.astype(f"u{bits // 8}")


def run(code: str, *arguments: np.ndarray, result: int = 32, special: dict[str, int] | None = None) -> np.ndarray:
    """Return the contents of `$0`; the arguments are `$1`, `$2`, ..."""
    given = {f"${number + 1}": values for number, values in enumerate(arguments)}
    count = len(arguments[0]) if arguments else COUNT
    return Program(code).run(count, given, {"$0": result}, (special or {}).get)["$0"]


def signed(value: int, bits: int = 32) -> int:
    """A number of `bits` bits with its sign."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def lop3(a: int, b: int, c: int, table: int) -> int:
    """The table, bit by bit."""
    return sum((table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32))


def prmt(a: int, b: int, selector: int) -> int:
    """Bytes of both, the sign of one in all bits where the selector says so."""
    source = struct.pack("<II", a, b)
    result = 0
    for place in range(4):
        choice = selector >> 4 * place & 15
        byte = source[choice & 7]
        result |= ((0xFF if byte & 0x80 else 0) if choice & 8 else byte) << 8 * place
    return result


def bfe(a: int, position: int, length: int, *, sign: bool) -> int:
    """The pseudocode of the PTX ISA."""
    position, length = position & 255, length & 255
    msb = 31
    bit = 0 if not sign or length == 0 else a >> min(position + length - 1, msb) & 1
    result = 0
    for i in range(32):
        result |= (a >> (position + i) & 1 if i < length and position + i <= msb else bit) << i
    return result


def bfi(a: int, b: int, position: int, length: int) -> int:
    """The pseudocode of the PTX ISA."""
    position, length = position & 255, length & 255
    for i in range(length):
        if position + i > 31:
            break
        b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
    return b


BINARY: list[tuple[str, Callable[[int, int], int]]] = [
    ("add.u32", lambda a, b: a + b),
    ("sub.s32", lambda a, b: a - b),
    ("add.sat.s32", lambda a, b: max(min(signed(a) + signed(b), 2**31 - 1), -(2**31))),
    ("mul.lo.s32", lambda a, b: a * b),
    ("mul.hi.u32", lambda a, b: a * b >> 32),
    ("mul.hi.s32", lambda a, b: signed(a) * signed(b) >> 32),
    ("min.s32", lambda a, b: min(signed(a), signed(b))),
    ("max.u32", max),
    ("and.b32", lambda a, b: a & b),
    ("or.b32", lambda a, b: a | b),
    ("xor.b32", lambda a, b: a ^ b),
    ("shl.b32", lambda a, b: a << b if b < 32 else 0),
    ("shr.u32", lambda a, b: a >> b if b < 32 else 0),
    ("shr.s32", lambda a, b: signed(a) >> min(b, 31)),
]


@pytest.mark.parametrize(("name", "function"), BINARY)
def test_integer_instructions_of_two_operands(name: str, function: Callable[[int, int], int]) -> None:
    a, b = words(), words()
    if name.startswith("sh"):
        b = np.where(RNG.integers(0, 2, COUNT) == 0, b, b & 63).astype(np.uint32)
    found = run(f"{name} $0, $1, $2;", a, b)
    expected = [function(int(x), int(y)) & 0xFFFFFFFF for x, y in zip(a, b, strict=True)]
    assert found.tolist() == expected


TERNARY: list[tuple[str, Callable[[int, int, int], int]]] = [
    ("mad.lo.u32", lambda a, b, c: a * b + c),
    ("mad.hi.s32", lambda a, b, c: (signed(a) * signed(b) >> 32) + c),
    ("bfe.u32", lambda a, b, c: bfe(a, b, c, sign=False)),
    ("bfe.s32", lambda a, b, c: bfe(a, b, c, sign=True)),
    ("prmt.b32", prmt),
    ("shf.l.wrap.b32", lambda a, b, c: (b << 32 | a) << (c & 31) >> 32),
    ("shf.r.clamp.b32", lambda a, b, c: (b << 32 | a) >> min(c, 32)),
]


@pytest.mark.parametrize(("name", "function"), TERNARY)
def test_integer_instructions_of_three_operands(name: str, function: Callable[[int, int, int], int]) -> None:
    a, b, c = words(), words(), words()
    if name.startswith(("bfe", "shf")):
        b, c = (b & 63 if name.startswith("bfe") else b), c & 63
    found = run(f"{name} $0, $1, $2, $3;", a, b, c)
    expected = [function(int(x), int(y), int(z)) & 0xFFFFFFFF for x, y, z in zip(a, b, c, strict=True)]
    assert found.tolist() == expected


@pytest.mark.parametrize("table", [0x80, 0xFE, 0x96, 0xE2, 0x1B])
def test_lop3_is_any_function_of_three_bits(table: int) -> None:
    a, b, c = words(), words(), words()
    found = run(f"lop3.b32 $0, $1, $2, $3, {table:#x};", a, b, c)
    assert found.tolist() == [lop3(int(x), int(y), int(z), table) for x, y, z in zip(a, b, c, strict=True)]


def test_bits_are_counted_inserted_and_turned() -> None:
    a, b, place, size = words(), words(), words() & 63, words() & 63
    assert run("popc.b32 $0, $1;", a).tolist() == [int(x).bit_count() for x in a]
    assert run("clz.b32 $0, $1;", a).tolist() == [32 - int(x).bit_length() for x in a]
    assert run("brev.b32 $0, $1;", a).tolist() == [int(f"{x:032b}"[::-1], 2) for x in a]
    found = run("bfi.b32 $0, $1, $2, $3, $4;", a, b, place, size)
    assert found.tolist() == [bfi(*map(int, parts)) for parts in zip(a, b, place, size, strict=True)]


def test_the_wide_product_has_twice_the_bits() -> None:
    a, b, c = words(), words(), words(64)
    found = run("mad.wide.s32 $0, $1, $2, $3;", a, b, c, result=64)
    expected = [(signed(int(x)) * signed(int(y)) + int(z)) % 2**64 for x, y, z in zip(a, b, c, strict=True)]
    assert found.tolist() == expected


def test_names_vectors_and_guards() -> None:
    a, b = words(), words()
    code = """
    {
        .reg .pred p, q;       // p: a < b, q: the opposite
        .reg .b32 t<2>;
        .reg .b64 both;
        setp.lt.u32 p|q, $1, $2;
        mov.b64 both, {$1, $2};
        shr.u64 both, both, 16;
        mov.b64 {t0, t1}, both;
        add.u32 $0, t0, t1;
        @q mov.u32 $0, 0x11;
        @!q add.u32 $0, $0, 1; /* only where a < b */
    }
    """
    expected = []
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        both = (y << 32 | x) >> 16
        expected.append(((both & 0xFFFFFFFF) + (both >> 32) + 1) & 0xFFFFFFFF if x < y else 0x11)
    assert run(code, a, b).tolist() == expected


def test_comparisons_join_and_select() -> None:
    a = RNG.standard_normal(COUNT).astype(np.float32)
    a[:3] = np.nan
    raw = a.view(np.uint32)
    code = "{ .reg .pred p, q; setp.gtu.f32 p, $1, 0f3F000000; setp.lt.and.f32 q, $1, 2.0, p; selp.b32 $0, 7, -1, q; }"
    with np.errstate(invalid="ignore"):
        expected = np.where((~(a <= 0.5)) & (a < 2), 7, 0xFFFFFFFF)
    np.testing.assert_array_equal(run(code, raw), expected)


def test_floats_are_rounded_once() -> None:
    a, b, c = (RNG.standard_normal(COUNT).astype(np.float32) for _ in range(3))
    # A product whose low half decides: only one rounding gives it.
    a[0], b[0], c[0] = 1 + 2**-12, 1 + 2**-12, -1
    found = run("fma.rn.f32 $0, $1, $2, $3;", *(x.view(np.uint32) for x in (a, b, c))).view(np.float32)
    exact = a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)
    np.testing.assert_array_equal(found, exact.astype(np.float32))
    assert found[0] == np.float32(2**-11 + 2**-24)


def test_pairs_of_halves() -> None:
    a, b = (RNG.standard_normal((COUNT, 2)).astype(np.float16) for _ in range(2))
    found = run("mul.rn.f16x2 $0, $1, $2;", a.view(np.uint32).ravel(), b.view(np.uint32).ravel())
    np.testing.assert_array_equal(found.view(np.float16).reshape(-1, 2), a * b)


@pytest.mark.parametrize(("target", "dtype"), [("e4m3x2", ml_dtypes.float8_e4m3fn), ("e5m2x2", ml_dtypes.float8_e5m2)])
def test_two_numbers_are_converted_into_one_register(target: str, dtype: type) -> None:
    high, low = (np.float32(RNG.standard_normal(COUNT) * 100) for _ in range(2))
    high[0], low[0], high[1] = 1e9, -np.inf, np.nan
    code = f"cvt.rn.satfinite.{target}.f32 $0, $1, $2;"
    found = run(code, high.view(np.uint32), low.view(np.uint32), result=16)
    limit = float(ml_dtypes.finfo(dtype).max)
    for byte, values in ((found >> 8, high), (found & 255, low)):
        have = byte.astype(np.uint8).view(dtype).astype(np.float32)
        np.testing.assert_array_equal(have, np.clip(values, -limit, limit).astype(dtype).astype(np.float32))


@pytest.mark.parametrize(
    ("code", "function"),
    [
        ("cvt.rni.s32.f32", np.rint),
        ("cvt.rzi.s32.f32", np.trunc),
        ("cvt.rmi.s32.f32", np.floor),
        ("cvt.rpi.s32.f32", np.ceil),
    ],
)
def test_floats_become_integers(code: str, function: Callable[[np.ndarray], np.ndarray]) -> None:
    a = np.append(RNG.standard_normal(COUNT) * 10, [2.5, -2.5, 0.5, 1e20, -1e20, np.nan]).astype(np.float32)
    expected = np.clip(np.nan_to_num(function(a.astype(np.float64))), -(2**31), 2**31 - 1).astype(np.int32)
    np.testing.assert_array_equal(run(f"{code} $0, $1;", a.view(np.uint32)).view(np.int32), expected)


def test_integers_grow_with_their_sign() -> None:
    a = words()
    assert run("cvt.s32.s8 $0, $1;", a).tolist() == [signed(int(x), 8) & 0xFFFFFFFF for x in a]
    assert run("cvt.u32.u8 $0, $1;", a).tolist() == [int(x) & 255 for x in a]
    limited = [min(max(signed(int(x)), -128), 127) & 0xFFFFFFFF for x in a]
    assert run("cvt.sat.s8.s32 $0, $1;", a).tolist() == limited


def test_approximations_are_near() -> None:
    a = RNG.uniform(0.1, 8, COUNT).astype(np.float32)
    for name, function in (("ex2", np.exp2), ("lg2", np.log2), ("rcp", lambda x: 1 / x), ("sqrt", np.sqrt)):
        found = run(f"{name}.approx.ftz.f32 $0, $1;", a.view(np.uint32)).view(np.float32)
        np.testing.assert_allclose(found, function(a.astype(np.float64)), rtol=2**-23)


def test_subnormals_are_flushed_where_it_says_so() -> None:
    tiny = np.full(1, 1e-40, np.float32).view(np.uint32)
    assert run("add.f32 $0, $1, $1;", tiny)[0] == 2 * tiny[0]
    assert run("add.ftz.f32 $0, $1, $1;", tiny)[0] == 0


def test_special_registers_are_asked_for() -> None:
    assert run("mov.u32 $0, %ctaid.x;", special={"ctaid.x": 5}).tolist() == [5] * COUNT
    with pytest.raises(UnknownInstruction, match="they differ in '%laneid'"):
        run("mov.u32 $0, %laneid;")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("vabsdiff4.s32.s32.s32 $0, $1, $1, $1;", "can't run the PTX instruction 'vabsdiff4.s32.s32.s32 $0"),
        ("ld.global.b32 $0, [$1];", "can't run the PTX instruction 'ld.global.b32"),
        ("add.rz.f32 $0, $1, $1;", "can't run the PTX instruction 'add.rz.f32"),
        ("L1: bra L1;", "can't read the PTX 'L1: bra L1'"),
        ("add.u32 $0, $1;", "has 1 operands, not 2"),
        ("add.u32 $0, $1, x;", "no register or number 'x'"),
        ("add.u32 y, $1, $1;", "no register 'y'"),
    ],
)
def test_what_is_unknown_is_named(code: str, message: str) -> None:
    with pytest.raises(UnknownInstruction) as found:
        run(code, words())
    assert message in str(found.value)
