"""Atomic operations."""

# covers: tl.memory, tt.atomic

import triton
import triton.language as tl

from tests.gallery.cases import case


@case({"x": "*i32:16", "u": "*u32:16", "w": "*i64:16", "n": "i32"})
@triton.jit
def integer_atomics(x, u, w, n):
    """Every atomic operation over integers, with masks and without, over blocks and scalars."""
    index = tl.arange(0, 32)
    a = tl.atomic_add(x + index, index)
    a += tl.atomic_max(x + index, a, mask=index < n)
    a += tl.atomic_min(x + index, 3)
    a += tl.atomic_and(x + index, a)
    a += tl.atomic_or(x + index, a, index < n)
    a += tl.atomic_xor(x + index, a)
    a += tl.atomic_xchg(x + index, n)
    tl.atomic_max(u + index, a.to(tl.uint32))
    tl.atomic_min(u + index, 7)
    tl.atomic_add(w, 1)
    tl.atomic_max(w + 1, n)
    tl.atomic_cas(x + index, a, a * 2)
    tl.atomic_cas(x, n, n + 1)


@case({"x": "*fp32:16", "h": "*fp16:16", "b": "*bf16:16", "d": "*fp64:16", "v": "*fp32:16", "n": "i32"})
@triton.jit
def float_atomics(x, h, b, d, v, n):
    """Atomic operations over floats; minimum and maximum work on the bits."""
    index = tl.arange(0, 32)
    a = tl.load(v + index)
    tl.atomic_add(x + index, a)
    tl.atomic_add(h + index, a.to(tl.float16), mask=index < n)
    tl.atomic_add(b + index, a.to(tl.bfloat16))
    tl.atomic_add(d + index, a.to(tl.float64))
    tl.atomic_add(x, 1.0)
    tl.store(v + index, tl.atomic_max(x + index, a))
    tl.store(v + index, tl.atomic_min(x + index, a, mask=index < n))
    tl.store(v + index, tl.atomic_xchg(x + index, a))


@case({"x": "*i32:16", "lock": "*i32:16", "n": "i32"})
@triton.jit
def orders_and_scopes(x, lock, n):
    """Memory orders and scopes; a lock that is taken and freed."""
    index = tl.arange(0, 32)
    tl.atomic_add(x + index, 1, sem="relaxed")
    tl.atomic_add(x + index, 1, sem="acquire", scope="cta")
    tl.atomic_add(x + index, 1, sem="release", scope="sys")
    tl.atomic_xchg(x, 1, sem="acq_rel", scope="gpu")
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    a = tl.load(x + index)
    tl.store(x + index, a + n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")


@case({"x": "*i32:16", "f": "*fp32:16", "out": "*i32:16", "n": "i32"})
@triton.jit
def atomic_memory(x, f, out, n):
    """Atomic loads, stores and polls; atomic methods of pointers."""
    index = tl.arange(0, 32)
    a = tl.atomic_load(x + index, mask=index < n)
    a += tl.atomic_load(x, sem="relaxed", scope="cta")
    tl.atomic_store(x + index, a)
    tl.atomic_store(x, n, sem="release", scope="sys")
    tl.store(out + index, (x + index).atomic_add(a, index < n))
    tl.store(out + index, (x + index).atomic_cas(a, a + 1))
    done = tl.atomic_poll(x, n)
    tl.store(out, done)
