"""The grid of cores, and coordinates in it."""

from __future__ import annotations

import ast

from ..dialects import ttl
from .affine import Affine
from .calls import Call, lowering
from .values import Index, Items, Range, Static, Value
from .visitor import Visitor


def _dims(call: Call) -> int:
    dims = call.visitor.static_int(call.at("dims"), call["dims"], "'dims'")
    if dims not in (1, 2):
        raise call.error("dims", f"a grid has two dimensions: 'dims' is 1 or 2, found {dims}")
    return dims


@lowering("ttl.core", "ttl.node")
def _core(call: Call) -> Value:
    dims = _dims(call)
    op = call.visitor.builder.insert(ttl.CoreOp(dims))
    found = [Index(Affine.of(each)) for each in op.coordinates]
    return found[0] if dims == 1 else Items([*found])


@lowering("ttl.grid_size")
def _grid_size(call: Call) -> Value:
    x, y = call.visitor.unit.grid
    return Static(x * y) if _dims(call) == 1 else Items([Static(x), Static(y)])


def static_core(visitor: Visitor, node: ast.AST, value: Value, what: str) -> tuple[int, int]:
    """A core (x, y) that is known at compile time; an integer is one of a grid with one row."""
    items = value.items if isinstance(value, Items) else [value]
    numbers = [visitor.static_int(node, each, f"a coordinate of {what}") for each in items]
    if len(numbers) not in (1, 2):
        raise visitor.error(node, f"{what} is a core (x, y), found {len(numbers)} coordinates")
    x, y = (*numbers, 0)[:2]
    _check(visitor, node, what, ((x, x + 1), (y, y + 1)))
    return x, y


def static_range(visitor: Visitor, node: ast.AST, value: Value, what: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The first and the last core of a range that is known at compile time: `(slice(1, 4), 0)`."""
    items = value.items if isinstance(value, Items) else [value]
    if len(items) == 2 and all(isinstance(each, Items) for each in items):
        first, last = (static_core(visitor, node, each, what) for each in items)
        return first, last
    if len(items) not in (1, 2):
        raise visitor.error(node, f"{what} has a coordinate or a slice for x and y, found {len(items)}")
    bounds = [_bounds(visitor, node, each, size, what) for each, size in zip(items, visitor.unit.grid, strict=False)]
    x, y = (*bounds, (0, 1))[:2]
    _check(visitor, node, what, (x, y))
    return (x[0], y[0]), (x[1] - 1, y[1] - 1)


def _bounds(visitor: Visitor, node: ast.AST, value: Value, size: int, what: str) -> tuple[int, int]:
    if not isinstance(value, Range):
        at = visitor.static_int(node, value, f"a coordinate of {what}")
        return at, at + 1
    if value.step not in (None, Static(None), Static(1)):
        raise visitor.error(node, f"{what} is a rectangle of cores: a slice has no step")
    ends: list[int] = []
    for end, default in ((value.start, 0), (value.stop, size)):
        known = end is not None and end != Static(None)
        ends.append(visitor.static_int(node, end, f"a bound of {what}") if known and end is not None else default)
    if ends[0] >= ends[1]:
        raise visitor.error(node, f"{what} has no core: the slice from {ends[0]} to {ends[1]} is empty")
    return ends[0], ends[1]


def _check(visitor: Visitor, node: ast.AST, what: str, bounds: tuple[tuple[int, int], tuple[int, int]]) -> None:
    for axis, (start, stop), size in zip("xy", bounds, visitor.unit.grid, strict=True):
        if not 0 <= start < stop <= size:
            found = f"{start}" if stop == start + 1 else f"{start} to {stop - 1}"
            raise visitor.error(node, f"{what} is outside of the grid: {axis} is from 0 to {size - 1}, found {found}")
