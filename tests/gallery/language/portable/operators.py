"""Operators over all element types, and the promotion of types."""

# covers: tl.dtypes, tt.elementwise

import triton
import triton.language as tl

from tests.gallery.cases import case


@triton.jit
def _at(x, lanes: tl.constexpr):
    return tl.load(x + tl.arange(0, lanes))


@triton.jit
def _put(out, position, a):
    tl.store(out + position * 32 + tl.arange(0, 32), a)


@case({"x": "*i8:16", "y": "*i16:16", "z": "*i32:16", "w": "*i64:16", "out": "*i64:16"}, name="signed_arithmetic")
@case({"x": "*u8:16", "y": "*u16:16", "z": "*u32:16", "w": "*u64:16", "out": "*i64:16"}, name="unsigned_arithmetic")
@triton.jit
def integer_arithmetic(x, y, z, w, out):
    """Arithmetic over pairs of integer types of one signedness."""
    a, b, c, d = _at(x, 32), _at(y, 32), _at(z, 32), _at(w, 32)
    _put(out, 0, a + b)
    _put(out, 1, b - c)
    _put(out, 2, c * d)
    _put(out, 3, a // b)
    _put(out, 4, d % c)
    _put(out, 5, a * a + a - a)
    _put(out, 6, d // d + d % d)


@case({"x": "*i8:16", "y": "*u8:16", "z": "*i32:16", "w": "*u32:16", "v": "*u64:16", "out": "*i64:16"})
@triton.jit
def mixed_signedness(x, y, z, w, v, out):
    """Signed meets unsigned: the type of the result follows width, then unsignedness."""
    a, b, c, d, e = _at(x, 32), _at(y, 32), _at(z, 32), _at(w, 32), _at(v, 32)
    _put(out, 0, a + b)
    _put(out, 1, c + b)
    _put(out, 2, c * d)
    _put(out, 3, a - e)
    _put(out, 4, a < b)
    _put(out, 5, c > d)
    _put(out, 6, (b & a) | (c ^ d))


@case({"x": "*fp16:16", "y": "*bf16:16", "z": "*fp32:16", "w": "*fp64:16", "out": "*fp64:16"})
@triton.jit
def float_arithmetic(x, y, z, w, out):
    """Arithmetic over pairs of float types."""
    a, b, c, d = _at(x, 32), _at(y, 32), _at(z, 32), _at(w, 32)
    _put(out, 0, a + b)
    _put(out, 1, b - c)
    _put(out, 2, c * d)
    _put(out, 3, a / b)
    _put(out, 4, c % d)
    _put(out, 5, a * a - a / a)
    _put(out, 6, b * b)
    _put(out, 7, -a)
    _put(out, 8, -d + c)


@case({"x": "*i32:16", "y": "*fp16:16", "z": "*i64:16", "w": "*u8:16", "b": "*i1", "out": "*fp32:16"})
@triton.jit
def integers_meet_floats(x, y, z, w, b, out):
    """Integers, bools and floats in one operation; true division of integers."""
    i, h, long, byte, flag = _at(x, 32), _at(y, 32), _at(z, 32), _at(w, 32), _at(b, 32)
    _put(out, 0, i + h)
    _put(out, 1, h * long)
    _put(out, 2, byte / h)
    _put(out, 3, long / long)
    _put(out, 4, flag + h)
    _put(out, 5, flag + i)
    _put(out, 6, flag * flag)
    _put(out, 7, h / 3)
    _put(out, 8, byte / byte)


@case({"x": "*fp16:16", "y": "*i8:16", "z": "*bf16:16", "w": "*u16:16", "out": "*fp32:16"})
@triton.jit
def python_numbers(x, y, z, w, out):
    """Numbers of Python on either side of a block; they take the block's type when they fit."""
    a, b, c, d = _at(x, 32), _at(y, 32), _at(z, 32), _at(w, 32)
    _put(out, 0, a + 1)
    _put(out, 1, 2.5 - a)
    _put(out, 2, b * 3)
    _put(out, 3, b + 2.5)
    _put(out, 4, 1 / c)
    _put(out, 5, 100 + b)
    _put(out, 6, 7 // b + b % 7)
    _put(out, 7, d - 1)
    _put(out, 8, 1.0e30 * c)
    _put(out, 9, True + d)
    _put(out, 10, 3 - d)


@case({"n": "i32", "m": "i64", "u": "u32", "f": "fp32", "h": "fp16", "out": "*fp64:16"})
@triton.jit
def scalars_and_blocks(n, m, u, f, h, out):
    """A scalar beside a block, and scalars beside scalars."""
    index = tl.arange(0, 32)
    block = index.to(tl.float16)
    _put(out, 0, index + n)
    _put(out, 1, index * m)
    _put(out, 2, index + u)
    _put(out, 3, block * f)
    _put(out, 4, block * h)
    _put(out, 5, index * f)
    tl.store(out + 500, n + m)
    tl.store(out + 501, n * u)
    tl.store(out + 502, f + h)
    tl.store(out + 503, n * f)
    tl.store(out + 504, n / 2)
    tl.store(out + 505, n // 2 + n % 3)
    tl.store(out + 506, 2147483647 + n)
    tl.store(out + 507, 0.1 + h)
    tl.store(out + 508, 2147483648 * u)


@case({"x": "*i8:16", "y": "*u16:16", "z": "*i32:16", "w": "*u64:16", "out": "*i64:16"})
@triton.jit
def bits(x, y, z, w, out):
    """Bitwise operators and shifts, logical and arithmetic."""
    a, b, c, d = _at(x, 32), _at(y, 32), _at(z, 32), _at(w, 32)
    _put(out, 0, a & a | a)
    _put(out, 1, b ^ b)
    _put(out, 2, ~c)
    _put(out, 3, ~d)
    _put(out, 4, a << 2)
    _put(out, 5, c >> 3)
    _put(out, 6, d >> 3)
    _put(out, 7, b >> c)
    _put(out, 8, 1 << c)
    _put(out, 9, a & 15)
    _put(out, 10, c << d)


@case({"x": "*i16:16", "y": "*u32:16", "z": "*fp32:16", "w": "*bf16:16", "out": "*i1"})
@triton.jit
def comparisons(x, y, z, w, out):
    """The six comparisons over signed, unsigned and float values."""
    a, b, c, d = _at(x, 32), _at(y, 32), _at(z, 32), _at(w, 32)
    _put(out, 0, a < 3)
    _put(out, 1, a <= a)
    _put(out, 2, b > 3)
    _put(out, 3, b >= b)
    _put(out, 4, c == d)
    _put(out, 5, c != 1.0)
    _put(out, 6, c < d)
    _put(out, 7, 1 <= c)
    _put(out, 8, a > b)
    _put(out, 9, d >= a)
    _put(out, 10, not (a == b) if False else (a == b))


@case({"x": "*i32:16", "z": "*fp32:16", "out": "*i1"})
@triton.jit
def logic_of_blocks(x, z, out):
    """and, or, not and the methods logical_and and logical_or over blocks."""
    a, c = _at(x, 32), _at(z, 32)
    _put(out, 0, (a > 1) & (c < 2))
    _put(out, 1, (a > 1) | (c < 2))
    _put(out, 2, (a > 1).logical_and(c < 2))
    _put(out, 3, (a > 1).logical_or(c < 2))
    _put(out, 4, not (a > 1))
    _put(out, 5, a > 1 and a < 5)
    _put(out, 6, a == 0 or c == 0)
    _put(out, 7, (a > 1) ^ (c < 2))


@case({"x": "*fp32:16", "y": "*i32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def augmented(x, y, out, n):
    """Every augmented assignment."""
    a, b = _at(x, 32), _at(y, 32)
    a += 1
    a -= n
    a *= 2.0
    a /= 3
    b //= 3
    b %= 7
    b <<= 1
    b >>= 2
    b &= 255
    b |= 1
    b ^= n
    _put(out, 0, a + b)


@case({"x": "*fp32:16", "y": "*fp16:16", "p": "*i64:16", "n": "i64", "u": "u32", "out": "*fp32:16"})
@triton.jit
def pointers(x, y, p, n, u, out):
    """Arithmetic of pointers, in both orders, with offsets of several types."""
    index = tl.arange(0, 32)
    _put(out, 0, tl.load(x + index))
    _put(out, 1, tl.load(index + x))
    _put(out, 2, tl.load(x + n + index))
    _put(out, 3, tl.load(x + u + index))
    _put(out, 4, tl.load((x + 64) - index))
    _put(out, 5, tl.load(y + index.to(tl.int64)))
    raw = tl.load(p).to(tl.pointer_type(tl.float32))
    _put(out, 6, tl.load(raw + index))
    tl.store(p + 1, x.to(tl.int64))


@case({"x": "*fp32:16", "y": "*fp32:16", "i": "*i32:16", "out": "*fp32:16"})
@triton.jit
def broadcasting(x, y, i, out):
    """Blocks of different shapes meet: sizes of one, a scalar, ranks that differ by one."""
    rows, columns = tl.arange(0, 16), tl.arange(0, 32)
    a = tl.load(x + rows)[:, None]
    b = tl.load(y + columns)[None, :]
    c = tl.load(i + columns)
    index = rows[:, None] * 32 + columns[None, :]
    tl.store(out + index, a * b)
    tl.store(out + 512 + index, (a + b) * c + tl.load(x))
    tl.store(out + 1024 + index, tl.where(c > 0, a, b))
    tl.store(out + 1536 + index, a)


@case({"x": "*fp8e5:16", "y": "*fp8e4nv:16", "z": "*fp16:16", "out": "*fp32:16"})
@triton.jit
def small_floats(x, y, z, out):
    """8-bit floats meet wider floats, and are compared and selected."""
    a, b, c = _at(x, 32), _at(y, 32), _at(z, 32)
    _put(out, 0, a.to(tl.float32) + b.to(tl.float32))
    _put(out, 1, a.to(tl.float16) * c)
    _put(out, 2, tl.where(c > 0, a, a))
    _put(out, 3, b.to(tl.float16) + c)
