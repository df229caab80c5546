"""Calls of other jitted functions, tuples, named tuples, spread arguments."""

from typing import NamedTuple

import triton
import triton.language as tl

from tests.gallery.cases import case


class Bounds(NamedTuple):
    low: tl.tensor
    high: tl.tensor


class Strided(NamedTuple):
    pointer: tl.tensor
    stride: tl.tensor
    size: tl.constexpr


@triton.jit
def _square(a):
    return a * a


@triton.jit
def _hypotenuse(a, b):
    return _square(a) + _square(b)


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def nested_calls(x, out):
    """A function that calls a function, over blocks and over scalars."""
    index = tl.arange(0, 64)
    a = tl.load(x + index)
    tl.store(out + index, _hypotenuse(a, _square(tl.load(x))))
    tl.store(out + 64, _hypotenuse(tl.load(x + 1), 2.0))


@triton.jit
def _window(index, low=0, high=100, *, invert: tl.constexpr = False):
    inside = (index >= low) & (index < high)
    if invert:
        return not inside if inside.type.is_block() is False else inside ^ True
    return inside


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def defaults_and_keywords(x, out, n):
    """Default arguments, keywords in another order, keyword-only arguments."""
    index = tl.arange(0, 128)
    a = tl.load(x + index, mask=_window(index))
    b = tl.load(x + index, mask=_window(index, high=n), other=1.0)
    c = tl.load(x + index, mask=_window(high=n, index=index, low=3, invert=True), other=2.0)
    tl.store(out + index, a + b * c)


@triton.jit
def _min_max(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def _store_all(out, values, SIZE: tl.constexpr):
    for i in tl.static_range(len(values)):
        tl.store(out + i * SIZE + tl.arange(0, SIZE), values[i])


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def tuples(x, out):
    """Tuples are returned, unpacked, indexed, built, passed on and nested."""
    index = tl.arange(0, 32)
    a = tl.load(x + index)
    b = tl.load(x + 32 + index)
    low, high = _min_max(a, b)
    both = _min_max(low + 1, high - 1)
    nested = (both, (a, b))
    _store_all(out, (low, high, nested[0][1], nested[1][0]), 32)
    (first, second), third = nested
    tl.store(out + 128 + index, first + second + third[-1])
    ends = (a, b, low)[1:]
    tl.store(out + 160 + index, ends[0] - ends[1])


@triton.jit
def _total(first, *rest):
    total = first
    for i in tl.static_range(len(rest)):
        total += rest[i]
    return total


@triton.jit
def _forward(*arguments):
    return _total(*arguments)


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def spread_arguments(x, out, n):
    """*args: collected, spread, forwarded."""
    index = tl.arange(0, 32)
    a = tl.load(x + index)
    values = (a, n, 2.0)
    tl.store(out + index, _total(a, a * 2, n))
    tl.store(out + 32 + index, _forward(*values, 1))
    tl.store(out + 64, _total(n))


@case({"pair": ("*fp32:16", "i32"), "out": "*fp32:16"})
@triton.jit
def tuple_argument(pair, out):
    """A tuple as a kernel's argument."""
    index = tl.arange(0, 64)
    a = tl.load(pair[0] + index, mask=index < pair[1])
    tl.store(out + index, a)


@triton.jit
def _inside(index, bounds):
    return (index >= bounds.low) & (index < bounds.high)


@triton.jit
def _wider(bounds, by):
    return Bounds(bounds.low - by, bounds.high + by)


@triton.jit
def _load_strided(view):
    index = tl.arange(0, view.size)
    return tl.load(view.pointer + index * view.stride)


@case({"x": "*fp32:16", "out": "*fp32:16", "low": "i32", "high": "i32", "stride": "i32"})
@triton.jit
def named_tuples(x, out, low, high, stride):
    """Named tuples are built, passed, returned and read by name, by index and by unpacking."""
    index = tl.arange(0, 64)
    bounds = _wider(Bounds(low, high), 2)
    a = _load_strided(Strided(x, stride, 64))
    start, end = bounds
    tl.store(out + index, a * start + end, mask=_inside(index, bounds))
    tl.store(out + 64, bounds[1])


@triton.jit(noinline=True)
def _norm(x, power):
    a = tl.load(x + tl.arange(0, 128))
    return tl.sum(tl.abs(a) * power, axis=0), tl.max(a, axis=0)


@triton.jit(noinline=True)
def _scale_in_place(out, scale):
    a = tl.load(out + tl.arange(0, 128))
    tl.store(out + tl.arange(0, 128), a * scale)


@case({"x": "*fp32:16", "y": "*fp16:16", "out": "*fp32:16"})
@triton.jit
def separate_functions(x, y, out):
    """Functions that are not inlined: with results and without, one of them for two types."""
    total, top = _norm(x, 2.0)
    small, _ = _norm(y, _square(total))
    _scale_in_place(out, total + top + small)


@triton.jit(noinline=True)
def _clamp_below(x, limit):
    value = tl.load(x)
    if value > limit:
        return limit
    return value * 2


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def separate_function_with_branches(x, out, n):
    """A function that is not inlined and returns early, called in a loop."""
    total = 0.0
    for i in range(n):
        total += _clamp_below(x + i, 4.0)
    tl.store(out, total)


@triton.jit
def _apply(function: tl.constexpr, a, b):
    return function(a, b)


@triton.jit
def _add(a, b):
    return a + b


@case({"x": "*fp32:16", "out": "*fp32:16"})
@triton.jit
def functions_as_values(x, out):
    """Functions are passed as compile-time arguments; a local name for one."""
    index = tl.arange(0, 32)
    a = tl.load(x + index)
    fold: tl.constexpr = _add
    tl.store(out + index, _apply(_hypotenuse, a, a + 1) + fold(a, 1.0))


@triton.jit
def _changes_nothing_outside(a, n):
    a = a + n
    n += 1
    return a * n


@case({"x": "*fp32:16", "out": "*fp32:16", "n": "i32"})
@triton.jit
def shadowing(x, out, n):
    """Names of a called function are its own; names of a kernel change their type between uses."""
    index = tl.arange(0, 32)
    a = tl.load(x + index)
    b = _changes_nothing_outside(a, n)
    a = (a + b).to(tl.float16)
    n = a + n
    tl.store(out + index, n)
    n = 3
    tl.store(out + 32 + index, n)


@triton.jit
def _difference(a, b):
    return a - b


@case({"x": "*i32:16", "out": "*i32:16"})
@triton.jit
def order_of_arguments(x, out):
    """Effects in arguments: Triton evaluates keyword arguments first."""
    tl.store(out, _difference(tl.atomic_add(x, 1), b=tl.atomic_add(x, 2)))
    tl.store(out + 1, _difference(tl.atomic_add(x, 3), tl.atomic_add(x, 4)))
    tl.store(out + 2, tl.atomic_add(x, 5) - tl.atomic_add(x, 6))
