"""Loads and stores with every option."""

# covers: tl.memory, tt.memory

import triton
import triton.language as tl

from tests.gallery.cases import case


@case({"x": "*fp16:16", "out": "*fp16:16", "n": "i32"})
@triton.jit
def masks(x, out, n):
    """Masks and fill values of other types and shapes than the pointers; scalars with masks."""
    index = tl.arange(0, 64)
    rows = tl.arange(0, 8)[:, None]
    a = tl.load(x + index, mask=index < n)
    b = tl.load(x + index, index < n, 1)
    c = tl.load(x + index, mask=index < n, other=a)
    d = tl.load(x + rows * 64 + index[None, :], mask=rows < n, other=2.5)
    e = tl.load(x + index, mask=n > 3, other=0)
    f = tl.load(x, mask=n > 3, other=1.0)
    g = tl.load(x + 1, mask=n < 9)
    tl.store(out + index, a + b + c + e + f + g, mask=index < n)
    tl.store(out + rows * 64 + index[None, :], d, mask=(rows < n) & (index[None, :] < n))
    tl.store(out + 5, f, mask=n > 5)
    tl.store(out + index, 1.0, n > 7)
    tl.store(out + index, f)
    tl.store(out + rows * 64 + index[None, :], rows)


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def cache_hints(x, out):
    """Cache modifiers, eviction policies, volatile."""
    index = tl.arange(0, 64)
    a = tl.load(x + index, cache_modifier=".ca")
    a += tl.load(x + index, cache_modifier=".cg", eviction_policy="evict_first")
    a += tl.load(x + index, cache_modifier=".cv")
    a += tl.load(x + index, eviction_policy="evict_last")
    a += tl.load(x + index, volatile=True)
    a += tl.load(x + 3, volatile=True, cache_modifier=".cg")
    tl.store(out + index, a, cache_modifier=".wb")
    tl.store(out + index, a + 1, cache_modifier=".cg", eviction_policy="evict_last")
    tl.store(out + index, a + 2, cache_modifier=".cs", eviction_policy="evict_first")
    tl.store(out + index, a + 3, cache_modifier=".wt")
    tl.store(out, 1.0, eviction_policy="evict_first")


@case({"flags": "*i1:16", "x": "*u8:16", "out": "*i1:16"})
@triton.jit
def booleans_in_memory(flags, x, out):
    """Memory of bools is bytes."""
    index = tl.arange(0, 32)
    a = tl.load(flags + index)
    b = tl.load(flags + index, mask=index < 7, other=True)
    one = tl.load(flags)
    tl.store(out + index, a ^ b)
    tl.store(out + index, tl.load(x + index))
    tl.store(out, one)
    tl.store(out + 1, True)


@case({"a": "*i8:16", "b": "*bf16:16", "c": "*i64:16", "d": "*fp8e5:16", "x": "*fp32:16", "n": "i32"})
@triton.jit
def converting_stores(a, b, c, d, x, n):
    """A value is converted to the type of the memory."""
    index = tl.arange(0, 32)
    value = tl.load(x + index)
    tl.store(a + index, index)
    tl.store(b + index, value)
    tl.store(c + index, value)
    tl.store(c + index, index)
    tl.store(d + index, value)
    tl.store(b, n)
    tl.store(a, 3)
    tl.store(b + index, 0.5)
    tl.store(c, n)


@case({"x": "*fp32:16", "y": "*fp32:16", "n": "i32", "m": "i32"})
@triton.jit
def methods_of_pointers(x, y, n, m):
    """The order of loads and stores to the same memory; store as a method."""
    index = tl.arange(0, 32)
    a = tl.load(x + index)
    (y + index).store(a)
    b = tl.load(y + index)
    tl.store(x + index, b + a)
    c = tl.load(x + index)
    tl.store(y + index, c, mask=index < n)
    tl.store(y + index, tl.load(y + index) * m)


@case({"table": "*i64:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def pointers_from_memory(table, out, n):
    """Addresses that are read from memory, as in grouped problems."""
    index = tl.arange(0, 32)
    for group in range(n):
        pointer = tl.load(table + group).to(tl.pointer_type(tl.float16))
        a = tl.load(pointer + index)
        tl.store(out + group * 32 + index, a)
