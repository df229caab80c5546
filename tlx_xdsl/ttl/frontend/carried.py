"""Blocks that a loop carries from one iteration to the next: `z = z + y`, `z += y`, `z = ttl.math.max(z, y)`.

A value of tiles lives in registers as long as nothing waits, so what is carried is in a circular buffer of the
compiler's own. A sum of floats, `z += y` and nothing else, is added up there by the packer, which reads no block, or
before it in registers (`analysis.register_sums`). Any other value takes two places in turn: an iteration waits for the
block of the one before, and pushes the next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..dialects import ttl
from ..dialects.ttcore import is_float
from .blocks import own_buffer, push_value, store, wait_block
from .tiles import as_tiles
from .values import Acquired, BlockState, Buffer, Sum, Tiles, Unsettled
from .visitor import Visitor, assigned_names


@dataclass
class Carried:
    """The blocks that one loop carries."""

    visitor: Visitor
    node: ast.For
    sums: dict[str, Sum]
    others: dict[str, Buffer]

    @property
    def names(self) -> frozenset[str]:
        """The names that keep a value in the loop and after it."""
        return frozenset((*self.sums, *self.others))

    def begin(self) -> None:
        """Wait for the blocks of the iteration before; the builder is in the loop's body."""
        for name, buffer in self.others.items():
            self.visitor.names[name] = wait_block(self.visitor, buffer)

    def end(self) -> None:
        """Push the blocks of this iteration."""
        for name, buffer in self.others.items():
            value = self.visitor.lookup(ast.copy_location(ast.Name(name, ast.Load()), self.node))
            self.visitor.locate(self.node)
            push_value(self.visitor, self.node, buffer, as_tiles(self.visitor, self.node, value, f"'{name}' in a loop"))
            self.visitor.builder.insert(ttl.CBPopOp(buffer.ssa))

    def after(self) -> None:
        """Give the names the blocks of the last iteration; the builder is after the loop."""
        for name, block in self.sums.items():
            self.visitor.builder.insert(ttl.CBPushOp(block.buffer.ssa))
            self.visitor.names[name] = wait_block(self.visitor, block.buffer)
        for name, buffer in self.others.items():
            self.visitor.names[name] = wait_block(self.visitor, buffer)


def carry(visitor: Visitor, node: ast.For, trips: int | None) -> Carried:
    """The blocks that a loop carries, which it is about to begin; `trips` is how often it runs, if that is known."""
    found = Carried(visitor, node, {}, {})
    for name in sorted(assigned_names(node.body)):
        value = visitor.names.get(name)
        if not isinstance(value, Tiles | Unsettled) or (isinstance(value, Acquired) and value.reserved):
            continue
        if first_use(node.body, name) != "read":
            continue
        before = as_tiles(visitor, node, value, f"'{name}', which a loop carries on,")
        additions = [*_additions(node.body, name)]
        if len(additions) == _mentions(node.body, name) and is_float(ttl.tile_of(before.type).data_type):
            is_direct = any(each in _direct(node.body) for each in additions)
            found.sums[name] = _sum(visitor, node, name, before, starts_empty=is_direct and bool(trips))
        else:
            found.others[name] = own_buffer(visitor, name, before.type, 2)
            push_value(visitor, node, found.others[name], before)
    return found


def _sum(visitor: Visitor, node: ast.For, name: str, before: Tiles, *, starts_empty: bool) -> Sum:
    """The block to which a loop adds: what was there is stored first, unless it is zero and an addition comes first."""
    buffer = own_buffer(visitor, name, before.type, 1)
    view = visitor.builder.insert(ttl.CBReserveOp(buffer.ssa)).view
    block = Sum(view, buffer, True, BlockState(visitor.builder.block))
    fill = before.ssa.owner
    if not (starts_empty and isinstance(fill, ttl.FillOp) and fill.value.value.data == 0):
        store(visitor, node, block, before, node, accumulate=False)
    visitor.names[name] = block
    return block


# --- what a loop's body does with a name ----------------------------------------------------------------------------


def added(statement: ast.stmt, name: str) -> ast.expr | None:
    """The value that a statement adds to a name: `name += value`, `name = name + value` or `name = value + name`."""
    summand: ast.expr | None = None
    match statement:
        case ast.AugAssign(target=ast.Name(id=target), op=ast.Add(), value=value):
            summand = value if target == name else None
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.BinOp(left=left, op=ast.Add(), right=right)):
            if target == name and isinstance(left, ast.Name) and left.id == name:
                summand = right
            elif target == name and isinstance(right, ast.Name) and right.id == name:
                summand = left
        case _:
            pass
    return None if summand is None or _loads(summand, name) else summand


def _additions(statements: Sequence[ast.stmt], name: str) -> Iterator[ast.stmt]:
    for statement in statements:
        for each in ast.walk(statement):
            if isinstance(each, ast.stmt) and added(each, name) is not None:
                yield each


def _mentions(statements: Sequence[ast.stmt], name: str) -> int:
    """The number of statements that say a name, each counted for itself."""
    return sum(
        any(isinstance(each, ast.Name) and each.id == name for each in _own(inner))
        for statement in statements
        for inner in ast.walk(statement)
        if isinstance(inner, ast.stmt)
    )


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement that are in no other statement."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            yield from (each for each in ast.walk(child))


def _direct(statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that every iteration runs."""
    for statement in statements:
        yield statement
        if isinstance(statement, ast.With):
            yield from _direct(statement.body)


def _loads(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def first_use(statements: Sequence[ast.stmt], name: str) -> str | None:
    """`read` if statements may read a name before they assign it, `write` if they surely assign it, else None."""
    for statement in statements:
        if (found := _first_use(statement, name)) is not None:
            return found
    return None


def _first_use(statement: ast.stmt, name: str) -> str | None:
    match statement:
        case ast.Assign(targets=targets, value=value):
            stored = any(_loads(target, name) for target in targets)
            return "read" if _loads(value, name) else "write" if stored else None
        case ast.For(iter=source, body=body):
            is_read = _loads(source, name) or first_use(body, name) == "read"
            return "read" if is_read else None
        case ast.If(test=test, body=body, orelse=orelse):
            both = {first_use(body, name), first_use(orelse, name)}
            return "read" if _loads(test, name) or "read" in both else "write" if both == {"write"} else None
        case ast.With(items=items, body=body):
            if any(_loads(item.context_expr, name) for item in items):
                return "read"
            stored = any(item.optional_vars is not None and _loads(item.optional_vars, name) for item in items)
            return "write" if stored else first_use(body, name)
        case _:
            return "read" if _loads(statement, name) else None
