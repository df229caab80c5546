"""Memory that a nest reads while it writes other memory of the user's: a copy is made where the two overlap in part."""

from __future__ import annotations

from collections.abc import Callable

from .builder import Builder
from .function import FunctionEmitter
from .numbers import Number, as_value
from .values import I64, Value
from .views import View, address, byte_range


def readable(fn: FunctionEmitter, source: View, written: View, copy: View, make: Callable[[], None]) -> View:
    """What a nest reads instead of `source`, element by element, where it writes the elements of `written`.

    All views have the same sizes. That is `source` itself if it lies apart from `written` or is the same memory, else
    `copy`, after `make` has written the instructions that fill it.
    """
    b = fn.b
    apart = _apart(b, source, written)
    direct = address(b, source, source.offset)
    same = b.compare("icmp eq", direct, address(b, written, written.offset))
    for one, other in zip(source.strides, written.strides, strict=True):
        if not (isinstance(one, int) and one == other):
            same = b.binary("and", same, b.compare("icmp eq", as_value(one), as_value(other)))
    fine = b.binary("or", apart, same)
    if source.bytes != written.bytes:
        fine = apart
    before, copies, done = b.label, b.name(), b.name()
    b.branch_if(fine, done, copies)
    b.begin(copies)
    make()
    base = address(b, copy, copy.offset)
    strides = [as_value(stride) for stride in copy.strides]
    after = b.label
    b.branch(done)
    b.begin(done)
    chosen = b.phi("ptr", 1, [(direct, before), (base, after)])[0]
    numbers: list[Number] = []
    for one, other, value in zip(source.strides, copy.strides, strides, strict=True):
        same_stride = isinstance(one, int) and one == other
        numbers.append(one if same_stride else b.phi(I64, 1, [(as_value(one), before), (value, after)])[0])
    return View(chosen, source.element, 0, source.sizes, tuple(numbers), source.bounds)


def _apart(b: Builder, first: View, second: View) -> Value:
    """Whether two boxes have no byte in common, as far as their first and last ones say."""
    (start, end), (other_start, other_end) = (byte_range(b, view) for view in (first, second))
    return b.binary("or", b.compare("icmp ule", end, other_start), b.compare("icmp ule", other_end, start))
