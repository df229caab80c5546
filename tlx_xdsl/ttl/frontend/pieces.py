"""Pieces of tensors, `t[r0:r1, c0:c1]`: in tiles, or in elements where a tensor has no tiles."""

from __future__ import annotations

import ast
from math import prod

from tlx_xdsl.errors import CompilationError

from .affine import Affine
from .values import Index, Items, Piece, Range, Static, Tensor, Value
from .visitor import Visitor


def piece_of(visitor: Visitor, node: ast.Subscript, tensor: Tensor, index: Value) -> Piece:
    """The piece of a tensor that an index says."""
    given = index.items if isinstance(index, Items) else [index]
    nodes = (
        node.slice.elts
        if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == len(given)
        else [node.slice] * len(given)
    )
    whole = tensor.spec.shape if tensor.spec.layout.kind == "interleaved" else tensor.spec.tiles
    if len(given) == 1 and isinstance(given[0], Range):
        # All of the other dimensions.
        given, nodes = [given[0], *[Range(None, None, None)] * (len(whole) - 1)], [nodes[0]] * len(whole)
    if len(given) not in (1, len(whole)):
        raise visitor.error(node.slice, f"{tensor.describe()} has {len(whole)} dimensions, found {len(given)} indices")
    if len(given) == 1:
        start = visitor.as_index(nodes[0], given[0], f"an index of '{tensor.name}'")
        _check_number(visitor, nodes[0], tensor, start)
        return Piece(tensor, (_value(start),), None)
    starts: list[Value] = []
    sizes: list[int] = []
    for dim, (each, place) in enumerate(zip(given, nodes, strict=True)):
        start, size = _bounds(visitor, place, tensor, dim, each, whole[dim])
        starts.append(_value(start))
        sizes.append(size)
    return Piece(tensor, tuple(starts), tuple(sizes))


def _value(index: Index) -> Value:
    return Static(index.affine.known) if index.affine.known is not None else index


def _bounds(visitor: Visitor, node: ast.AST, tensor: Tensor, dim: int, given: Value, whole: int) -> tuple[Index, int]:
    """Return where a piece begins along a dimension, and its size there."""
    if not isinstance(given, Range):
        start = visitor.as_index(node, given, f"an index of '{tensor.name}'")
        size = 1
    else:
        if given.step not in (None, Static(None), Static(1)):
            raise visitor.error(node, f"a piece of '{tensor.name}' is in one piece: a slice has no step")
        start = _bound(visitor, node, given.start, 0)
        stop = _bound(visitor, node, given.stop, whole)
        known = (stop.affine - start.affine).known
        if known is None:
            raise visitor.error(
                node,
                f"the size of a piece of '{tensor.name}' must be known at compile time: write it as "
                "'start : start + size'",
            )
        if known < 1:
            raise visitor.error(
                node, f"a piece of '{tensor.name}' has at least one row and column, found a size of {known}"
            )
        size = known
    first = start.affine.known
    if first is not None and not 0 <= first <= first + size <= whole:
        raise _outside(visitor, node, tensor, dim, first, size, whole)
    return start, size


def _outside(
    visitor: Visitor, node: ast.AST, tensor: Tensor, dim: int, first: int, size: int, whole: int
) -> CompilationError:
    unit = " of elements" if tensor.spec.layout.kind == "interleaved" else " of tiles"
    from_last = len(tensor.spec.shape) - dim
    lines = {1: "column", 2: "row"}.get(from_last, "layer")
    found = f"{lines}s {first} to {first + size - 1}" if size > 1 else f"{lines} {first}"
    have = f"{whole} {lines}{'' if whole == 1 else 's'}{unit if from_last < 3 else ''}"
    return visitor.error(node, f"{tensor.describe()} has {have}, found {found}")


def _bound(visitor: Visitor, node: ast.AST, given: Value | None, default: int) -> Index:
    if given is None or given == Static(None):
        return Index(Affine.of(default))
    return visitor.as_index(node, given, "a bound of a slice")


def _check_number(visitor: Visitor, node: ast.AST, tensor: Tensor, index: Index) -> None:
    """A single index is the number of a shard, a row or a tile."""
    spec = tensor.spec
    what, count = {
        "sharded": ("shards", spec.layout.grid[0] * spec.layout.grid[1] if spec.layout.grid else 0),
        "interleaved": ("rows", prod(spec.shape[:-1])),
        "tiled": ("tiles", prod(spec.tiles)),
    }[spec.layout.kind]
    known = index.affine.known
    if known is not None and not 0 <= known < count:
        raise visitor.error(node, f"{tensor.describe()} has {count} {what}, found number {known}")
