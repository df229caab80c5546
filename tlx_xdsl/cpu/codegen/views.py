"""Memory as the emitter knows it: a pointer, an offset, sizes and strides, most of them numbers of the types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.ir import Attribute

from .builder import (
    I1,
    I8,
    I32,
    I64,
    PTR,
    Builder,
    Value,
    bytes_of_element,
    constant,
    iota,
    mangle,
    memory_type,
    register_type,
)

LINE = 64
"""Bytes of a line of the cache, and of the widest store."""

# Sizes, strides and offsets: Python integers where the types state them, so that they are folded, else values.

Number: TypeAlias = "int | Value"
"""In elements, 64 bits."""


def as_value(number: Number) -> Value:
    """The number as an i64."""
    return constant(number, I64) if isinstance(number, int) else number


def add(b: Builder, first: Number, second: Number) -> Number:
    """The sum."""
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    if first == 0:
        return second
    if second == 0:
        return first
    return b.binary("add nsw", as_value(first), as_value(second))


def subtract(b: Builder, first: Number, second: Number) -> Number:
    """The difference."""
    if isinstance(first, int) and isinstance(second, int):
        return first - second
    return first if second == 0 else b.binary("sub nsw", as_value(first), as_value(second))


def multiply(b: Builder, first: Number, second: Number) -> Number:
    """The product."""
    if isinstance(first, int) and isinstance(second, int):
        return first * second
    if first == 0 or second == 0:
        return 0
    if first == 1:
        return second
    if second == 1:
        return first
    return b.binary("mul nsw", as_value(first), as_value(second))


def total(b: Builder, start: Number, factors: Sequence[Number], strides: Sequence[Number]) -> Number:
    """`start` and the products."""
    for factor, stride in zip(factors, strides, strict=True):
        start = add(b, start, multiply(b, factor, stride))
    return start


@dataclass(frozen=True)
class View:
    """Elements of one type in memory."""

    base: Value
    element: Attribute
    offset: Number = 0
    """Elements from the base to the first one."""
    sizes: tuple[Number, ...] = ()
    strides: tuple[Number, ...] = ()
    """Elements from one index to the next along each dimension."""
    bounds: tuple[Value, Value] | None = None
    """The first address that belongs to the memory, and the one after the last; None: not checked."""

    @property
    def in_memory(self) -> str:
        """The type of an element there."""
        return memory_type(self.element)

    @property
    def in_register(self) -> str:
        """The type of an element that was loaded."""
        return register_type(self.element)

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return bytes_of_element(self.element)

    def place(self, b: Builder, indices: Sequence[Number]) -> Number:
        """Elements from the base to the one with these indices."""
        return total(b, self.offset, indices, self.strides)

    def with_(self, *, offset: Number, sizes: Sequence[Number], strides: Sequence[Number]) -> View:
        """Another view of the same memory."""
        return replace(self, offset=offset, sizes=tuple(sizes), strides=tuple(strides))


def dense(base: Value, element: Attribute, sizes: Sequence[int]) -> View:
    """Memory in row-major order from `base` on."""
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return View(base, element, 0, tuple(sizes), tuple(strides))


def address(b: Builder, view: View, place: Number) -> Value:
    """The address of an element."""
    return view.base if place == 0 else b.gep(view.in_memory, view.base, as_value(place))


def load(b: Builder, view: View, place: Number, stride: Number = 0, lanes: int = 1, mask: Value | None = None) -> Value:
    """An element; with `lanes` those from `place` on, every `stride` elements, where the mask holds.

    Elements that are masked out are 0.
    """
    if lanes == 1 or stride == 0:
        found = b.load(view.in_memory, address(b, view, place), align=view.bytes)
    elif stride == 1:
        where = address(b, view, place)
        if mask is None:
            found = b.load(view.in_memory, where, lanes, view.bytes)
        else:
            found = _masked_load(b, view, where, lanes, mask)
    elif stride == 2 and mask is None:
        # All that lies between the first one and the last: its first half, and its second from one place before.
        first, second = (address(b, view, add(b, place, each)) for each in (0, lanes - 1))
        pairs = b.load(view.in_memory, first, lanes, view.bytes), b.load(view.in_memory, second, lanes, view.bytes)
        found = b.merged(*pairs, [lane + (lane >= lanes) for lane in range(0, 2 * lanes, 2)])
    else:
        found = gather(b, view, _spread(b, place, stride, lanes), mask)
    return from_memory(b, view, found)


def from_memory(b: Builder, view: View, value: Value) -> Value:
    """Return what was loaded as it is in registers: an i1 is not 0."""
    if view.in_register != I1:
        return value
    return b.compare("icmp ne", value, constant(0, view.in_memory, value.lanes))


def store(
    b: Builder, value: Value, view: View, place: Number, stride: Number = 0, lanes: int = 1, mask: Value | None = None
) -> None:
    """Write an element, or several of them as `load` reads them; with a stride of 0 the last one stays."""
    if value.element == I1:
        value = b.cast("zext", value, view.in_memory)
    if lanes == 1:
        b.store(value, address(b, view, place), view.bytes)
        return
    value = b.splat(value, lanes)
    if stride == 1:
        where = address(b, view, place)
        if mask is None:
            b.store(value, where, view.bytes)
        else:
            name = f"llvm.masked.store.{mangle(value)}.p0"
            b.externals.declare(name, "void", [value.type, PTR, "i32 immarg", mask.type])
            b.lines.append(f"  call void @{name}({value.typed}, {where.typed}, i32 {view.bytes}, {mask.typed})")
        return
    if isinstance(stride, int) and mask is None:
        for lane in range(lanes) if stride else [lanes - 1]:
            b.store(b.extract(value, lane), address(b, view, add(b, place, lane * stride)), view.bytes)
        return
    pointers = b.gep(view.in_memory, view.base, _spread(b, place, stride, lanes))
    name = f"llvm.masked.scatter.{mangle(value)}.v{lanes}p0"
    mask = mask or constant(1, I1, lanes)
    b.externals.declare(name, "void", [value.type, pointers.type, "i32 immarg", mask.type])
    b.lines.append(f"  call void @{name}({value.typed}, {pointers.typed}, i32 {view.bytes}, {mask.typed})")


def fetch(b: Builder, view: View, place: Number, count: int) -> None:
    """Ask the cache for the lines of some elements, which need not be there."""
    start = address(b, view, place)
    for byte in range(0, count * view.bytes, LINE):
        flags = (constant(each, I32) for each in (0, 3, 1))
        b.call("llvm.prefetch.p0", None, b.gep(I8, start, b.index(byte)), *flags)


def gather(b: Builder, view: View, places: Value, mask: Value | None) -> Value:
    """The elements at a vector of places, as they are in memory; 0 where the mask does not hold."""
    lanes = places.lanes
    pointers = b.gep(view.in_memory, view.base, places)
    mask = mask or constant(1, I1, lanes)
    other = constant(0, view.in_memory, lanes)
    name = f"llvm.masked.gather.{mangle(other)}.v{lanes}p0"
    b.externals.declare(name, other.type, [pointers.type, "i32 immarg", mask.type, other.type])
    return b.emit(
        f"call {other.type} @{name}({pointers.typed}, i32 {view.bytes}, {mask.typed}, {other.typed})",
        view.in_memory, lanes,
    )  # fmt: skip


def _masked_load(b: Builder, view: View, where: Value, lanes: int, mask: Value) -> Value:
    other = constant(0, view.in_memory, lanes)
    name = f"llvm.masked.load.{mangle(other)}.p0"
    b.externals.declare(name, other.type, [PTR, "i32 immarg", mask.type, other.type])
    return b.emit(
        f"call {other.type} @{name}({where.typed}, i32 {view.bytes}, {mask.typed}, {other.typed})",
        view.in_memory, lanes,
    )  # fmt: skip


def _spread(b: Builder, place: Number, stride: Number, lanes: int) -> Value:
    steps = iota(lanes, I64)
    if stride != 1:
        steps = b.binary("mul", steps, as_value(stride))
    return b.binary("add", as_value(place), steps)


def byte_range(b: Builder, view: View) -> tuple[Value, Value]:
    """The first address of the elements of a view, and the one after the last, as i64; they hold for no empty view."""
    low: Number = view.offset
    high: Number = view.offset
    for size, stride in zip(view.sizes, view.strides, strict=True):
        span = multiply(b, add(b, size, -1), stride)
        if isinstance(span, int):
            low, high = add(b, low, min(span, 0)), add(b, high, max(span, 0))
        else:
            zero = b.index(0)
            low = add(b, low, b.intrinsic("llvm.smin", span, zero))
            high = add(b, high, b.intrinsic("llvm.smax", span, zero))
    base = b.cast("ptrtoint", view.base, I64)
    return _byte(b, base, low, view), _byte(b, base, add(b, high, 1), view)


def _byte(b: Builder, base: Value, place: Number, view: View) -> Value:
    return b.binary("add", base, b.binary("mul", as_value(place), b.index(view.bytes)))
