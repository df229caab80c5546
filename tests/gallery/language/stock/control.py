"""Control flow: loops and conditions and their nests, loop options, early return, calls."""

import triton
import triton.language as tl

from tests.gallery.cases import BLACKWELL, HOPPER, case


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "limit": "fp32", "BLOCK": 128})
@triton.jit
def nested_loops_and_conditions(x, out, n, limit, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    steps = 0
    for i in range(n):
        a = tl.load(x + i * BLOCK + index)
        if i % 2 == 0:
            total += a
            while tl.max(total, axis=0) > limit:
                total *= 0.5
                steps += 1
        elif i % 3 == 0:
            for j in range(i, 0, -1):
                total -= a * j
        else:
            total = tl.where(total > 0, total, a)
    tl.store(out + index, total + steps)


@case({"x": "*i32", "out": "*i32", "n": "i32"})
@triton.jit
def collatz(x, out, n):
    """Scalars only: a loop that carries two values, with a condition in it."""
    value = tl.load(x + tl.program_id(0))
    steps = 0
    while (value != 1) & (steps < n):
        value = value // 2 if value % 2 == 0 else 3 * value + 1
        steps += 1
    tl.store(out + tl.program_id(0), steps)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "BLOCK": 128})
@triton.jit
def early_return(x, out, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    if start >= n:
        return
    index = start + tl.arange(0, BLOCK)
    a = tl.load(x + index)
    if tl.sum(a, axis=0) < 0:
        tl.store(out + index, -a)
        return
    tl.store(out + index, a)


@triton.jit(noinline=True)
def _norm(x, power):
    a = tl.load(x + tl.arange(0, 128))
    return tl.sum(tl.abs(a) * power, axis=0), tl.max(a, axis=0)


@triton.jit(noinline=True)
def _store_scaled(out, scale):
    a = tl.load(out + tl.arange(0, 128))
    tl.store(out + tl.arange(0, 128), a * scale)


@triton.jit
def _square(a):
    return a * a


@case({"x": "*fp32:16", "y": "*fp16:16", "out": "*fp32:16"}, archs=(HOPPER, BLACKWELL))
@triton.jit
def calls(x, y, out):
    """Functions that are not inlined, one of them called with two types, beside one that is."""
    total, top = _norm(x, 2.0)
    small, _ = _norm(y, _square(total))
    _store_scaled(out, total + top + small)


@case({"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "n": "i32", "BLOCK": 256}, archs=(HOPPER, BLACKWELL))
@triton.jit
def pipelined_loop(x, y, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.range(0, n, num_stages=3):
        total += tl.load(x + i * BLOCK + index) * tl.load(y + i * BLOCK + index)
    tl.store(out + index, total)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "BLOCK": 256}, archs=(HOPPER, BLACKWELL))
@triton.jit
def loop_options(x, out, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in tl.range(0, n, loop_unroll_factor=2):
        total += tl.load(x + i * BLOCK + index)
    for i in tl.range(n, disallow_acc_multi_buffer=True, disable_licm=True):
        total *= tl.load(x + i)
    for i in tl.range(0, n, num_stages=2, flatten=True):
        for j in range(i):
            total += tl.load(x + j * BLOCK + index)
        tl.store(out + i * BLOCK + index, total)
    for k in tl.static_range(3):
        total += k
    tl.store(out + index, total)


@case({"out": "*i64:16", "low": "i64", "high": "i64", "step": "i64"})
@triton.jit
def wide_loop_bounds(out, low, high, step):
    total = low
    for i in range(low, high, step):
        total += i
    tl.store(out, total)


@case({"x": "*fp32:16", "out": "*fp32:16", "mode": "i32", "MODE": 2, "BLOCK": 128})
@triton.jit
def choices(x, out, mode, MODE: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    a = tl.load(x + index)
    if MODE == 2:
        a += 1.0
    if mode == 0 or mode == 3:
        scale = 0.5
        bias = a
    elif mode > 1 and mode < 9:
        scale = 2.0
        bias = -a
    else:
        scale = 1.0
        bias = a * a
    tl.store(out + index, a * scale + bias)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "u32", "m": "u64"})
@triton.jit
def unsigned_loop_bounds(x, out, n, m):
    total = 0.0
    for i in range(n):
        total += tl.load(x + i)
    for i in range(m, m + 8, 2):
        total *= tl.load(x + i)
    tl.store(out, total)


@triton.jit(noinline=True)
def _first_above(x, limit):
    a = tl.load(x)
    if a > limit:
        if a > 2 * limit:
            return a
        a -= limit
    b = tl.load(x + 1) * a
    if b > limit:
        b *= 2
    return b


@case({"x": "*fp32:16", "pair": ("*fp32:16", "i32"), "limit": "fp32"})
@triton.jit
def tuples_and_several_returns(x, pair, limit):
    """An argument that is a tuple, and a function that is not inlined and returns at two places."""
    out, n = pair
    for i in range(n):
        value = _first_above(x + i, limit)
        if value < 0:
            tl.store(out, value)
        else:
            for j in range(i):
                value += tl.load(x + j)
            tl.store(out + i, value)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "BLOCK": 128}, num_warps=1)
@triton.jit
def flattened_loops(x, out, n, BLOCK: tl.constexpr):
    """A nest of loops that becomes one; the inner result is used after the inner loop."""
    index = tl.arange(0, BLOCK)
    for i in tl.range(0, n, flatten=True, num_stages=1):
        total = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, n):
            total += tl.load(x + j * BLOCK + index)
        tl.store(out + i * BLOCK + index, total)
