"""Control flow: loops, conditions, their nests, early returns, conditional expressions."""

import triton
import triton.language as tl

from tests.gallery.cases import case


@case({"x": "*fp32:16", "out": "*fp32:16", "rows": "i32", "columns": "i32", "BLOCK": 64})
@triton.jit
def row_walk(x, out, rows, columns, BLOCK: tl.constexpr):
    """Nested loops over run-time bounds, the inner one masked, with two values carried by the outer."""
    lanes = tl.arange(0, BLOCK)
    best = tl.full((BLOCK,), -1.0e30, tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        for start in range(0, columns, BLOCK):
            index = start + lanes
            a = tl.load(x + row * columns + index, mask=index < columns, other=0.0)
            sums += a
            best = tl.maximum(best, a)
        best -= 0.5
    tl.store(out + lanes, sums)
    tl.store(out + BLOCK + lanes, best)


@case({"x": "*i32:16", "out": "*i32:16", "n": "i32"})
@triton.jit
def digit_sums(x, out, n):
    """A while loop in a for loop; scalars of memory decide."""
    for i in range(n):
        value = tl.load(x + i)
        digits = 0
        while value > 0:
            digits += value % 10
            value = value // 10
        tl.store(out + i, digits)


@case({"out": "*i32:16", "n": "i32", "limit": "i32"})
@triton.jit
def while_in_while(out, n, limit):
    """Two nested while loops and a condition that is joined of two."""
    a = n
    count = 0
    while (a > 1) & (count < limit):
        b = a
        while b > count:
            b -= 3
        count += 1
        a = b + a // 2
    tl.store(out, count)
    tl.store(out + 1, a)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "step": "i32"})
@triton.jit
def downward(x, out, n, step):
    """Loops with a negative constant step, with a run-time step, and over a range that starts below zero."""
    total = 0.0
    for i in range(n, 0, -2):
        total += tl.load(x + i)
    for i in range(0, n, step):
        total *= tl.load(x + i)
    for i in range(-4, n):
        total -= tl.load(x + i + 4)
    tl.store(out, total)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "mode": "i32"})
@triton.jit
def branches(x, out, n, mode):
    """if, elif and else that define names, change names, and change nothing."""
    index = tl.arange(0, 128)
    a = tl.load(x + index)
    shift = 1.0
    if mode == 0:
        scale = a * 2
        shift = 3.0
    elif mode == 1:
        scale = a + 1
    elif mode < n:
        scale = -a
        shift = shift + 1
    else:
        scale = a
    if n > 10:
        tl.store(out + 128 + index, a)
    tl.store(out + index, scale + shift)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def loop_with_branches(x, out, n):
    """Branches in a loop change some of what the loop carries."""
    index = tl.arange(0, 64)
    total = tl.zeros((64,), tl.float32)
    even = 0
    last = -1
    for i in range(0, n):
        a = tl.load(x + i * 64 + index)
        if i % 2 == 0:
            even += 1
            total += a
        else:
            if i > 5:
                total -= a
                last = i
    tl.store(out + index, total * even + last)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def guards(x, out, n):
    """Returns before the end, one of them after a store."""
    pid = tl.program_id(axis=0)
    if pid >= n:
        return
    index = pid * 128 + tl.arange(0, 128)
    a = tl.load(x + index)
    if pid == 3:
        tl.store(out + index, a)
        return
    tl.store(out + index, a * 0.25)


@triton.jit
def _clipped(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value


@triton.jit
def _sign(value):
    if value < 0:
        return -1
    else:
        return 1


@case({"x": "*i32:16", "out": "*i32:16", "low": "i32", "high": "i32"})
@triton.jit
def early_return_of_values(x, out, low, high):
    """Functions that return from inside of conditions."""
    value = tl.load(x)
    tl.store(out, _clipped(value, low, high))
    tl.store(out + 1, _sign(value) * high)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "FAST": True, "BLOCK": 32})
@triton.jit
def ternaries(x, out, n, FAST: tl.constexpr, BLOCK: tl.constexpr):
    """Conditional expressions: of compile-time conditions, of scalars, nested."""
    width: tl.constexpr = BLOCK * 2 if FAST else BLOCK
    index = tl.arange(0, width)
    offset = 16 if n > 100 else 0
    a = tl.load(x + index + offset)
    limit = n if n < 64 else (64 if n < 1000 else 128)
    tl.store(out + index, a * (2.0 if FAST else n), mask=index < limit)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "m": "i32", "USE": False})
@triton.jit
def booleans(x, out, n, m, USE: tl.constexpr):
    """and, or and not: over compile-time values, which cut short, and over scalars."""
    if USE and x.does_not_exist:
        tl.store(out, 1.0)
    if not USE or out.neither:
        tl.store(out + 1, 2.0)
    if n > 3 and m > 4:
        tl.store(out + 2, 3.0)
    if n == 0 or not m == 1:
        tl.store(out + 3, 4.0)
    if (n > 0) & (m > 0) | (n == m):
        tl.store(out + 4, 5.0)
    if 0 < n < 9:
        tl.store(out + 5, 6.0)
    flag = n > 7 and USE
    if not flag:
        tl.store(out + 6, 7.0)


@case({"x": "*fp32:16", "out": "*fp32:16", "STEPS": 3})
@triton.jit
def unrolled(x, out, STEPS: tl.constexpr):
    """Static ranges: the index is a compile-time value in each turn."""
    index = tl.arange(0, 32)
    total = tl.zeros((32,), tl.float32)
    for i in tl.static_range(STEPS):
        if i % 2 == 1:
            total = total * 2
        total += tl.load(x + i * 32 + index)
    for i in tl.static_range(4, 0, -2):
        tl.store(out + 64 * i + tl.arange(0, 8 * i), tl.full((8 * i,), i, tl.float32))
    tl.store(out + index, total)


@case({"x": "*fp16:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def range_options(x, out, n):
    """Every option of tl.range, each kept as an attribute of the loop."""
    index = tl.arange(0, 64)
    total = tl.zeros((64,), tl.float32)
    for i in tl.range(n, num_stages=4):
        total += tl.load(x + i * 64 + index)
    for i in tl.range(0, n, 2, loop_unroll_factor=4):
        total -= tl.load(x + i * 64 + index)
    for i in tl.range(0, n, disallow_acc_multi_buffer=True):
        total += tl.load(x + i * 64 + index) * 2
    for i in tl.range(0, n, disable_licm=True):
        total *= tl.load(x + i * 64 + index)
    for i in tl.range(0, n, flatten=True, num_stages=2):
        for j in tl.range(i):
            total += tl.load(x + j * 64 + index)
    for i in tl.range(0, n, warp_specialize=True):
        total -= tl.load(x + i * 64 + index)
    tl.store(out + index, total)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def condition_wrapper(x, out, n):
    """A while loop with tl.condition."""
    i = 0
    total = 0.0
    while tl.condition(i < n, disable_licm=True):
        total += tl.load(x + i)
        i += 1
    tl.store(out, total)


@case({"out": "*i64:16", "low": "i64", "high": "i32", "first": "u32", "last": "u64"})
@triton.jit
def loop_index_types(out, low, high, first, last):
    """The type of a loop's index is that of its bounds together."""
    total = low * 0
    for i in range(low, high):
        total += i
    for i in range(first):
        total += i
    for i in range(0, last, 3):
        total += i.to(tl.int64)
    tl.store(out, total)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "eps": "fp32"})
@triton.jit
def newton(x, out, n, eps):
    """A loop that carries a float and an int, and a block from outside."""
    target = tl.load(x)
    guess = target
    left = n
    while left > 0:
        following = 0.5 * (guess + target / guess)
        difference = guess - following
        guess = following
        left = left - 1 if difference > eps else 0
    tl.store(out, guess)
    tl.store(out + 1, left)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def pointer_walk(x, out, n):
    """Pointers carried by a loop."""
    source = x + tl.arange(0, 16)
    target = out
    for _ in range(n):
        a = tl.load(source)
        tl.store(target + tl.arange(0, 16), a)
        source += 16
        target += n
    tl.store(source, 0.0)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32", "m": "i32"})
@triton.jit
def deep_nest(x, out, n, m):
    """for, while, if and for in each other; the innermost changes what all carry."""
    total = tl.zeros((32,), tl.float32)
    turns = 0
    for i in range(n):
        left = m
        while left > i:
            if left % 3 == 0:
                for k in range(left):
                    total += tl.load(x + k * 32 + tl.arange(0, 32))
                    turns += 1
            else:
                total = total * 0.5
            left -= 1
    tl.store(out + tl.arange(0, 32), total + turns)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def tuple_in_loop(x, out, n):
    """A tuple is carried by a loop and exchanged in it."""
    index = tl.arange(0, 32)
    a, b = tl.load(x + index), tl.load(x + 32 + index)
    low, high = 0, 0
    pair = (a, n)
    for i in range(n):
        a, b = b, a + b
        low, high = high, i
        pair = (pair[0] * 2, pair[1] - 1)
    tl.store(out + index, a - b + low + high)
    tl.store(out + index + 32, pair[0] + pair[1])


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def exchanged_aliases(x, out, n):
    """Two names of one value, exchanged in a loop."""
    a = tl.load(x)
    b = a
    for i in range(n):
        following = a + b + i
        b, a = a, following
    tl.store(out, b)
    tl.store(out + 1, a)
