"""Mathematical functions, libdevice."""

# covers: tl.math, libdevice

import triton
import triton.language as tl
from triton.language.extra import libdevice

from tests.gallery.cases import case


@case({"x": "*fp32:16", "d": "*fp64:16", "out": "*fp64:16"})
@triton.jit
def functions(x, d, out):
    """The functions of tl and tl.math over both wide float types; as methods."""
    index = tl.arange(0, 32)
    a, b = tl.load(x + index), tl.load(d + index)
    tl.store(out + index, tl.exp(a) + tl.exp2(a) + tl.log(a) + tl.log2(a))
    tl.store(out + index, tl.sin(a) + tl.cos(a) + tl.sqrt(a) + tl.rsqrt(a))
    tl.store(out + index, tl.erf(a) + tl.floor(a) + tl.ceil(a) + tl.abs(a))
    tl.store(out + index, tl.exp(b) + tl.log(b) + tl.sin(b) + tl.floor(b))
    tl.store(out + index, tl.math.sqrt(b) + tl.math.rsqrt(b) + tl.math.erf(b) + tl.math.abs(b))
    tl.store(out + index, a.exp() + a.log2() + a.abs() + a.floor() + a.ceil() + a.sqrt_rn())


@case({"x": "*fp32:16", "y": "*fp32:16", "i": "*i32:16", "u": "*u64:16", "n": "i32", "f": "fp32", "out": "*fp32:16"})
@triton.jit
def exact_functions(x, y, i, u, n, f, out):
    """Division and roots with rounding, fma, the high half of a product, absolute values of integers."""
    index = tl.arange(0, 32)
    a, b = tl.load(x + index), tl.load(y + index)
    j, k = tl.load(i + index), tl.load(u + index)
    tl.store(out + index, tl.fdiv(a, b) + tl.fdiv(a, 3.0, ieee_rounding=True))
    tl.store(out + index, tl.div_rn(a, b) + tl.sqrt_rn(a))
    tl.store(out + index, tl.fma(a, b, a) + tl.fma(a, 2.0, f))
    tl.store(out + index, tl.umulhi(j, 12345))
    tl.store(out + index, tl.umulhi(k, k))
    tl.store(out + index, tl.abs(j) + tl.abs(k))
    tl.store(out, tl.exp(f) + tl.abs(n) + tl.umulhi(n, n))


@case({"x": "*fp32:16", "y": "*fp32:16", "d": "*fp64:16", "i": "*i32:16", "f": "fp32", "out": "*fp64:16"})
@triton.jit
def device_library(x, y, d, i, f, out):
    """Functions of libdevice of one, two and three arguments, for both float types and integers."""
    index = tl.arange(0, 32)
    a, b, c, j = tl.load(x + index), tl.load(y + index), tl.load(d + index), tl.load(i + index)
    tl.store(out + index, libdevice.tanh(a) + libdevice.pow(a, b) + libdevice.fma(a, b, a))
    tl.store(out + index, libdevice.tanh(c) + libdevice.pow(c, c) + libdevice.asin(c))
    tl.store(out + index, libdevice.atan2(a, b) + libdevice.hypot(a, b) + libdevice.fast_expf(a))
    tl.store(out + index, libdevice.popc(j) + libdevice.clz(j) + libdevice.abs(j))
    tl.store(out + index, libdevice.isnan(a) + libdevice.float2int_rn(a) + libdevice.rint(a))
    tl.store(out, libdevice.tanh(f) + libdevice.round(f))
    tl.store(out + index, libdevice.ldexp(a, j) + libdevice.float_as_int(a))
    tl.store(out + index, libdevice.fmod(a, f))


@case({"x": "*fp32:16", "b": "*fp32:16", "out": "*fp32:16", "n": "i32", "p": "fp32", "seed": "i32"})
@triton.jit
def gelu(x, b, out, n, p, seed):
    """A pointwise chain, as it is fused by hand."""
    index = tl.program_id(0) * 256 + tl.arange(0, 256)
    inside = index < n
    a = tl.load(x + index, mask=inside) + tl.load(b + index % 64, mask=inside)
    cubic = a + 0.044715 * a * a * a
    gated = 0.5 * a * (1 + tl.exp(2 * cubic) / (tl.exp(2 * cubic) + 1))
    kept = (index * 7 + seed) % 100 > p * 100
    tl.store(out + index, tl.where(kept, gated / (1 - p), 0.0), mask=inside)
