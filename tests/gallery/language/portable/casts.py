"""Casts, bit casts, rounding."""

# covers: tl.creation, tl.dtypes

import triton
import triton.language as tl

from tests.gallery.cases import case


@triton.jit
def _at(x):
    return tl.load(x + tl.arange(0, 32))


@triton.jit
def _to_all_integers(a, out):
    index = tl.arange(0, 32)
    tl.store(out + index, a.to(tl.int8).to(tl.int64))
    tl.store(out + 32 + index, a.to(tl.uint8).to(tl.int64))
    tl.store(out + 64 + index, a.to(tl.int16).to(tl.int64))
    tl.store(out + 96 + index, a.to(tl.uint16).to(tl.int64))
    tl.store(out + 128 + index, a.to(tl.int32).to(tl.int64))
    tl.store(out + 160 + index, a.to(tl.uint32).to(tl.int64))
    tl.store(out + 192 + index, a.to(tl.int64))
    tl.store(out + 224 + index, a.to(tl.uint64).to(tl.int64))
    tl.store(out + 256 + index, a.to(tl.int1).to(tl.int64))


@triton.jit
def _to_all_floats(a, out):
    index = tl.arange(0, 32)
    tl.store(out + index, a.to(tl.float16))
    tl.store(out + 32 + index, a.to(tl.bfloat16))
    tl.store(out + 64 + index, a.to(tl.float32))
    tl.store(out + 96 + index, a.to(tl.float64))


INTEGERS = {"x": "*i8:16", "y": "*i64:16", "z": "*u32:16", "w": "*i1"}
FLOATS = {"x": "*fp16:16", "y": "*bf16:16", "z": "*fp32:16", "w": "*fp64:16"}


@case(INTEGERS | {"out": "*i64:16"}, name="between_integers")
@case(FLOATS | {"out": "*i64:16"}, name="floats_to_integers")
@triton.jit
def to_integers(x, y, z, w, out):
    """Every integer type, or every float type, to every integer type."""
    _to_all_integers(_at(x), out)
    _to_all_integers(_at(y), out + 1000)
    _to_all_integers(_at(z), out + 2000)
    _to_all_integers(_at(w), out + 3000)


@case(INTEGERS | {"out": "*fp64:16"}, name="integers_to_floats")
@case(FLOATS | {"out": "*fp64:16"}, name="between_floats")
@triton.jit
def to_floats(x, y, z, w, out):
    """Every integer type, or every float type, to every float type."""
    _to_all_floats(_at(x), out)
    _to_all_floats(_at(y), out + 1000)
    _to_all_floats(_at(z), out + 2000)
    _to_all_floats(_at(w), out + 3000)


@case({"x": "*fp32:16", "h": "*fp16:16", "q": "*fp8e4nv:16", "out": "*fp8e5:16", "wide": "*fp32:16"})
@triton.jit
def eight_bit_floats(x, h, q, out, wide):
    """Cast to and from 8-bit floats, with both roundings."""
    index = tl.arange(0, 32)
    a = _at(x)
    tl.store(out + index, a.to(tl.float8e5))
    tl.store(out + 32 + index, a.to(tl.float8e5, fp_downcast_rounding="rtz"))
    tl.store(out + 64 + index, _at(h).to(tl.float8e5))
    tl.store(out + 96 + index, _at(q).to(tl.float16).to(tl.float8e5))
    tl.store(wide + index, _at(q).to(tl.float32))
    tl.store(wide + 32 + index, a.to(tl.float8e4nv).to(tl.bfloat16))


@case({"x": "*fp32:16", "out": "*fp16:16"})
@triton.jit
def roundings(x, out):
    """Rounding of a cast to a smaller float."""
    index = tl.arange(0, 32)
    a = _at(x)
    tl.store(out + index, a.to(tl.float16, fp_downcast_rounding="rtne"))
    tl.store(out + 32 + index, a.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(out + 64 + index, tl.cast(a, tl.bfloat16, fp_downcast_rounding="rtz").to(tl.float16))
    tl.store(out + 96 + index, tl.cast(a, tl.float16))


@case({"x": "*fp32:16", "h": "*fp16:16", "n": "i64", "out": "*i32:16", "q": "*i8:16"})
@triton.jit
def bit_casts(x, h, n, out, q):
    """The same bits, read as another type."""
    index = tl.arange(0, 32)
    a = _at(x).to(tl.int32, bitcast=True)
    tl.store(out + index, a ^ 1)
    tl.store(out + 32 + index, tl.cast(_at(h), tl.int16, bitcast=True))
    tl.store(out + 64 + index, a.to(tl.uint32, bitcast=True) >> 1)
    tl.store(out + 96 + index, a.to(tl.float32, bitcast=True) > 0)
    tl.store(out + 128 + index, _at(q).to(tl.float8e5, bitcast=True).to(tl.float32) > 0)
    tl.store(x, n.to(tl.float64, bitcast=True))


@case({"n": "i32", "u": "u64", "f": "fp32", "d": "fp64", "out": "*fp64:16"})
@triton.jit
def scalar_casts(n, u, f, d, out):
    """Casts of scalars and of numbers."""
    tl.store(out, n.to(tl.int8).to(tl.float32) + u.to(tl.float16))
    tl.store(out + 1, f.to(tl.int32) + d.to(tl.float32))
    tl.store(out + 2, tl.cast(3, tl.int64) + n)
    tl.store(out + 3, tl.cast(0.5, tl.float16) * f)
    tl.store(out + 4, (n != 0).to(tl.int32) + f.to(tl.int1).to(tl.int32))
    tl.store(out + 5, tl.to_tensor(7) + tl.to_tensor(1.5))
