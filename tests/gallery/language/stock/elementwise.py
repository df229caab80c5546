"""One element at a time: arithmetic, mathematics, casts, inline assembly, random numbers, debugging aids."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.gallery.cases import BLACKWELL, HOPPER, case, since

BLOCK = 1024


@case({"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "n": "i32:16", "BLOCK": BLOCK}, archs=(HOPPER, BLACKWELL))
@case({"x": "*bf16", "y": "*bf16:16", "out": "*fp32:16", "n": "i32", "BLOCK": 256}, name="vector_add_unaligned")
@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    total = tl.load(x + index, mask=inside) + tl.load(y + index, mask=inside)
    tl.store(out + index, total, mask=inside)


@case({"x": "*fp32:16", "out": "*fp32:16", "BLOCK": BLOCK})
@triton.jit
def math_functions(x, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    b = tl.exp(a) + tl.exp2(a) + tl.log(a) + tl.log2(a)
    b += tl.sin(a) * tl.cos(a) - tl.erf(a)
    b += tl.sqrt(a) + tl.rsqrt(a) + tl.sqrt_rn(a)
    b += tl.floor(a) + tl.ceil(a) + tl.abs(a)
    b += tl.fma(a, b, a) + tl.div_rn(a, b) + tl.fdiv(a, b) + a % b
    b = tl.sigmoid(b) + -b
    tl.store(out + index, b)


@case({"x": "*fp32:16", "out": "*fp32:16", "BLOCK": 256})
@triton.jit
def approximate_division(x, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    tl.store(out + index, a / 3.0 + 1.0 / a + tl.fdiv(a, a + 2.0, ieee_rounding=True))


@case({"x": "*fp32:16", "i": "*i32:16", "out": "*fp32:16", "BLOCK": 256})
@triton.jit
def libdevice_calls(x, i, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    n = tl.load(i + index)
    b = libdevice.tanh(a) + libdevice.pow(a, 1.5) + libdevice.fma(a, a, a)
    b = libdevice.ldexp(b, n) + libdevice.j0(a)
    b = tl.where(libdevice.isnan(b) != 0, libdevice.copysign(a, b), b)
    tl.store(out + index, b)


@case({"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "low": "fp32", "high": "fp32", "BLOCK": 512})
@triton.jit
def minimum_maximum(x, y, out, low, high, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    b = tl.load(y + index)
    quiet = tl.minimum(a, b) + tl.maximum(a, b)
    strict = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL) + tl.maximum(a, b, tl.PropagateNan.ALL)
    bounded = tl.clamp(a, low, high) + tl.clamp(b, low, high, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out + index, tl.where(a > b, quiet, strict) + bounded)


@case({"x": "*i32:16", "y": "*u32:16", "s": "*i64:16", "out": "*i32:16", "wide": "*i64:16", "k": "i32", "BLOCK": 256})
@triton.jit
def integer_arithmetic(x, y, s, out, wide, k, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    u = tl.load(y + index)
    w = tl.load(s + index)
    signed = a // 7 + a % 5 + (a >> 3) + (a << 2) - (a ^ k)
    unsigned = u // 7 + u % 5 + (u >> 3) + tl.umulhi(u, u)
    bits = (a & 0x7FFFFFFF) | (~a)
    extremes = tl.minimum(a, k) + tl.maximum(a, k) + tl.minimum(u, u + 1).to(tl.int32) + tl.maximum(u, 9).to(tl.int32)
    order = (a < k) & (a <= 3) | (a > -3) & (a >= k) | (a == 0) & (a != k) | (u < 7) & (u >= 2)
    tl.store(out + index, tl.where(order, signed + bits, extremes) + unsigned.to(tl.int32) + tl.abs(a))
    tl.store(wide + index, w * a + tl.cdiv(w, 4096) + tl.umulhi(w.to(tl.uint64), 3).to(tl.int64), mask=~(a == 3))


@case({"x": "*i32:16", "out": "*i32:16", "BLOCK": 256}, name="overflow_checks", sanitize_overflow=True, debug=True)
@triton.jit
def overflow_checks(x, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    tl.store(out + index, a * a + a - 3)


@case({"i8": "*i8:16", "u16": "*u16:16", "f16": "*fp16:16", "f64": "*fp64:16", "out": "*fp32:16", "BLOCK": 256})
@triton.jit
def integer_and_float_casts(i8, u16, f16, f64, out, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(i8 + index)
    b = tl.load(u16 + index)
    h = tl.load(f16 + index)
    d = tl.load(f64 + index)
    widened = a.to(tl.int16).to(tl.int32).to(tl.int64) + b.to(tl.uint32).to(tl.uint64).to(tl.int64)
    narrowed = widened.to(tl.int32).to(tl.int16).to(tl.int8).to(tl.int1)
    floats = a.to(tl.float32) + b.to(tl.float32) + h.to(tl.float32) + d.to(tl.float32) + narrowed.to(tl.float32)
    floats += h.to(tl.int32).to(tl.float32) + h.to(tl.uint16).to(tl.float32) + d.to(tl.int64).to(tl.float32)
    floats += d.to(tl.float16).to(tl.float32) + h.to(tl.bfloat16).to(tl.float64).to(tl.float32)
    tl.store(out + index, floats)


@case(
    {"x": "*fp32:16", "e4": "*fp8e4nv:16", "e5": "*fp8e5:16", "h": "*fp16:16", "BLOCK": 512}, archs=(HOPPER, BLACKWELL)
)
@triton.jit
def fp8_casts(x, e4, e5, h, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    nearest = a.to(tl.float8e4nv)
    truncated = a.to(tl.float16, fp_downcast_rounding="rtz")
    rounded = a.to(tl.float8e5, fp_downcast_rounding="rtne")
    old = tl.load(e4 + index).to(tl.float16) + tl.load(e5 + index).to(tl.float16)
    tl.store(e4 + index, nearest)
    tl.store(e5 + index, rounded)
    tl.store(h + index, truncated + old + nearest.to(tl.bfloat16).to(tl.float16))


@case({"x": "*fp32:16", "out": "*i32:16", "address": "*i64:16", "number": "i64", "BLOCK": 256})
@triton.jit
def bitcasts(x, out, address, number, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    bits = a.to(tl.int32, bitcast=True)
    half = a.to(tl.float16).to(tl.int16, bitcast=True).to(tl.bfloat16, bitcast=True).to(tl.int16, bitcast=True)
    byte = a.to(tl.float8e5).to(tl.uint8, bitcast=True)
    tl.store(out + index, bits + half + byte)
    old = tl.load(address + index).to(tl.pointer_type(tl.int32))
    tl.store(old, bits, mask=bits > 0)
    tl.store(address + index, (x + index).to(tl.int64))
    tl.store(number.to(tl.pointer_type(tl.float16)), 2.0)
    scalar = x.to(tl.pointer_type(tl.int32), bitcast=True)
    tl.store(scalar, 7)


@case({"x": "*fp32:16", "y": "*i32:16", "out": "*fp32:16", "count": "*i32:16", "BLOCK": 512})
@triton.jit
def inline_assembly(x, y, out, count, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    n = tl.load(y + index)
    (root,) = (tl.inline_asm_elementwise("sqrt.approx.f32 $0, $1;", "=f,f", [a], tl.float32, is_pure=True, pack=1),)
    mantissa, exponent = tl.inline_asm_elementwise(
        """
        {
            .reg .b32 bits;
            mov.b32 bits, $2;
            and.b32 $0, bits, 0x7fffff;
            bfe.u32 $1, bits, 23, 8;
        }
        """,
        "=r,=r,f",
        [a],
        (tl.int32, tl.int32),
        is_pure=True,
        pack=1,
    )
    bytes4 = tl.inline_asm_elementwise(
        "vabsdiff4.s32.s32.s32 $0, $1, $2, $3;", "=r,r,r,r", [n, n, n], tl.int32, True, 1
    )
    packed = tl.inline_asm_elementwise(
        "shl.b32 $0, $1, 3;", "=r,r", [n.to(tl.int8)], dtype=tl.int8, is_pure=False, pack=4
    )
    tl.store(out + index, root)
    tl.store(count + index, mantissa + exponent + bytes4 + packed.to(tl.int32))


@triton.jit
def _swap_if_greater(a, b):
    if a > b:
        a, b = b, a
    return a, b


@case({"x": "*i32:16", "y": "*i32:16", "BLOCK": 256})
@triton.jit
def map_elements(x, y, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    low, high = tl.map_elementwise(_swap_if_greater, tl.load(x + index), tl.load(y + index))
    tl.store(x + index, low)
    tl.store(y + index, high)


@case({"x": "*fp32:16", "out": "*fp32:16", "seed": "i32", "p": "fp32", "BLOCK": 256}, library=True)
@triton.jit
def dropout(x, out, seed, p, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, index) > p
    a = tl.load(x + index)
    tl.store(out + index, tl.where(keep, a / (1 - p), 0.0))


@case({"out": "*fp32:16", "bits": "*u32:16", "seed": "i64", "BLOCK": 128}, library=True)
@triton.jit
def random_numbers(out, bits, seed, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    r0, r1, r2, r3 = tl.randint4x(seed, index, n_rounds=4)
    tl.store(bits + index, r0 ^ r1 ^ r2 ^ r3)
    tl.store(out + index, tl.randn(seed, index))


@case({"x": "*fp32:16", "n": "i32", "BLOCK": 128}, debug=True, archs=(HOPPER, BLACKWELL))
@triton.jit
def print_and_assert(x, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index, mask=index < n, other=-1.0)
    tl.device_print("x and its index: ", a, index)
    tl.device_print("hex", index, hex=True)
    tl.device_print('only "text" with a tab\t')
    tl.device_assert(index < n, "index is too large")
    tl.device_assert(n > 0, 'size (größe) < 1: "nothing"\n', mask=n < 100)
    tl.assume(n > 0)
    tl.assume(n % 8 == 0)
    tl.store(x + index, a, mask=index < n)


@case(
    {"x": "*fp32:16", "BLOCK": 128},
    limits=(since(3, 8, "tl.expect_zero"),),
)
@triton.jit
def expected_zeros(x, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    inside = index < 100
    a = tl.load(x + index, mask=inside, other=0.0)
    tl.store(x + index, tl.expect_zero(a, inside))


@case({"out": "*fp32:16", "h": "*fp16:16", "b": "*bf16:16", "d": "*fp64:16", "i": "*i64:16", "BLOCK": 128})
@triton.jit
def special_constants(out, h, b, d, i, BLOCK: tl.constexpr):
    """Numbers that are hard to print: infinities, NaN, subnormal and very large ones, and integers of all widths."""
    index = tl.arange(0, BLOCK)
    a = tl.load(out + index)
    a = tl.where(a > 0, float("inf"), a)
    a = tl.where(a < -1, float("-inf"), a)
    a = tl.where(a == 3.1415927410125732, float("nan"), a)
    tl.store(out + index, a * 1e-40 + 1.0e38 + 0.1 - 1.0e-7 + 16777216.0)
    half = tl.load(h + index)
    tl.store(h + index, tl.where(half > 1, 65504.0, half * 6.0e-8))
    brain = tl.load(b + index)
    tl.store(b + index, tl.where(brain > 1, 1e38, brain * 0.33))
    double = tl.load(d + index)
    tl.store(d + index, tl.where(double > 1, 1e300, double * 0.1))
    wide = tl.load(i + index)
    tl.store(i + index, tl.where(wide > 0, 0x7FFFFFFFFFFFFFFF, wide - 0x123456789ABCDEF))
