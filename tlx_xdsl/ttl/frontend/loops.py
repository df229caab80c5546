"""Loops: `affine.for` where the bounds are affine, `scf.for` elsewhere, and copies of the body for tuples."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from xdsl.dialects import affine, scf
from xdsl.dialects.builtin import AffineMapAttr, IndexType
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from .affine import Affine
from .blocks import is_reserved, promote_stores
from .calls import arguments_of
from .carried import carry
from .values import Builtin, Index, Items, Static, Value
from .visitor import Visitor, accumulated_names, assigned_names, hint


def visit_for(visitor: Visitor, node: ast.For) -> Value | None:
    """`for target in range(...)`, or in a tuple or a list."""
    if node.orelse:
        raise visitor.error(node.orelse[0], "unsupported in a TTL kernel: 'else' of a loop")
    bounds = _range_arguments(visitor, node.iter)
    if bounds is None:
        source = visitor.expression(node.iter)
        if not isinstance(source, Items):
            raise visitor.error(
                node.iter, f"a loop goes over 'range(...)', a tuple or a list, found {source.describe()}"
            )
        return _repeat(visitor, node, source.items)
    start, stop, step = bounds
    if visitor.thread is None:
        numbers = [visitor.static_int(node.iter, _value(each), "a bound of a loop of the kernel's own body")
                   for each in (start, stop)]  # fmt: skip
        return _repeat(visitor, node, [Static(each) for each in range(numbers[0], numbers[1], step)])
    visitor.locate(node)
    _emit(visitor, node, start, stop, step)
    return None


def _value(index: Index) -> Value:
    return Static(index.affine.known) if index.affine.known is not None else index


def _range_arguments(visitor: Visitor, node: ast.expr) -> tuple[Index, Index, int] | None:
    """First value, end and step if `node` is a call of `range`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    if visitor.expression(node.func) != Builtin("range"):
        return None
    positional, keywords = arguments_of(visitor, node)
    if keywords or not 1 <= len(positional) <= 3:
        raise visitor.error(node, f"'range' takes one to three integers, found {len(positional) + len(keywords)}")
    indices = [visitor.as_index(place, value, "an argument of 'range'") for place, value in positional]
    start, stop = (Index(Affine.of(0)), indices[0]) if len(indices) == 1 else indices[:2]
    step = 1
    if len(indices) == 3:
        step = visitor.static_int(positional[2][0], positional[2][1], "the step of 'range'")
        if not step:
            raise visitor.error(positional[2][0], "the step of 'range' must not be zero")
    return start, stop, step


def _repeat(visitor: Visitor, node: ast.For, items: Sequence[Value]) -> Value | None:
    """The body once for each item."""
    for item in items:
        visitor.assign(node.target, item)
        visitor.is_last = False
        returned = visitor.body(node.body)
        if returned is not None:
            return returned
    return None


def _emit(visitor: Visitor, node: ast.For, start: Index, stop: Index, step: int) -> None:
    """A loop of the IR."""
    if not isinstance(node.target, ast.Name):
        raise visitor.error(node.target, "the index of a loop over 'range' is a single name")
    trips = _trip_count(start, stop, step)
    if trips is not None and trips <= 0:
        return
    own, first, last, stride = start, start, stop, step
    if step < 0:
        if trips is None:
            raise visitor.error(node.iter, "the bounds of a loop with a negative step must be known at compile time")
        # From zero upwards: the index is computed of the loop's.
        first, last, stride = Index(Affine.of(0)), Index(Affine.of(trips)), 1
    carried = carry(visitor, node, trips)
    body = Block(arg_types=[IndexType()])
    is_affine = first.is_affine and last.is_affine
    visitor.builder.insert(_affine_for(first, last, stride, body) if is_affine
                           else _scf_for(visitor, first, last, stride, body))  # fmt: skip
    induction = body.args[0]
    hint(induction, node.target.id)
    index = Affine.of(induction)
    if step < 0:
        index = own.affine + index.times(step)
    why = "a loop changes it from one iteration to the next"
    _forget_assigned(visitor, node, why, carried.names)
    with visitor.builder.into(body, first):
        visitor.names[node.target.id] = Index(index, is_affine)
        carried.begin()
        visitor.is_last = False
        visitor.body(node.body)
        carried.end()
        visitor.locate(node)
        visitor.builder.insert(affine.YieldOp.get() if is_affine else scf.YieldOp())
    _forget_assigned(visitor, node, "a loop of the run assigns it", carried.names)
    carried.after()
    if trips is not None:
        promote_stores(visitor.thread, [body], visitor.builder.block)


def _trip_count(start: Index, stop: Index, step: int) -> int | None:
    apart = (stop.affine - start.affine).known
    return None if apart is None else len(range(0, apart, step))


def _forget_assigned(visitor: Visitor, node: ast.For, why: str, carried: frozenset[str]) -> None:
    """Let the names that the body assigns hold nothing, but for those that the loop carries on."""
    kept = carried | {name for name in accumulated_names(node.body) if is_reserved(visitor.names.get(name))}
    visitor.forget((assigned_names(node.body) | assigned_names([node])) - kept, why)


def _affine_for(first: Index, last: Index, step: int, body: Block) -> affine.ForOp:
    bounds: list[AffineMap] = []
    operands: list[list[SSAValue]] = []
    for each in (first, last):
        map_, values = each.affine.map()
        bounds.append(map_)
        operands.append(values)
    lower, upper = (AffineMapAttr(each) for each in bounds)
    return affine.ForOp.from_region(operands[0], operands[1], [], [], lower, upper, Region(body), step)


def _scf_for(visitor: Visitor, first: Index, last: Index, step: int, body: Block) -> scf.ForOp:
    builder = visitor.builder
    return scf.ForOp(builder.index(first), builder.index(last), builder.constant(step), [], body)
