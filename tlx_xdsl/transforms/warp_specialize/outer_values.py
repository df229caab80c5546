"""Tasks that use the values outside of them again: the inverse of the captures, for the written source.

A partition sees its captures only, and computes again what pure operations make of them. In source it is clearer to use
the value that the code before the tasks has. The frontend then makes the same captures as before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from tlx_xdsl.dialects.tlx import ReplicaIdOp
from tlx_xdsl.dialects.ttg import WarpSpecializeOp

_Key = tuple[type[Operation], tuple[SSAValue, ...], tuple[Attribute, ...], tuple[tuple[str, Attribute], ...]]


def use_outer_values(module: ModuleOp) -> None:
    """Let partitions use values from outside in the place of their arguments, and of what they compute again.

    The module does not verify afterwards: partitions are isolated from above. It is for printing only.
    """
    for op in list(module.walk()):
        if isinstance(op, WarpSpecializeOp):
            use_outer_values_in(op)


def use_outer_values_in(op: WarpSpecializeOp, *, but_own: tuple[type[Operation], ...] = ()) -> None:
    """Let the partitions of one operation do so; they have no arguments then.

    Operations of the classes `but_own` stay where anything else of the task uses them.
    """
    use_captured_values(op)
    known = _known(op)
    for region in op.partitions.partition_regions:
        block = region.block
        # Only what stands at the start was computed again; the rest is the task's own.
        equal = dict(known.equal)
        own: list[Operation] = []
        for inner in list(block.ops):
            same = known.ops.get(key) if (key := _key(inner, equal)) is not None else None
            if same is None:
                continue
            if isinstance(inner, but_own):
                own.append(inner)
                equal.update(zip(inner.results, same.results, strict=True))
                continue
            for old, new in zip(inner.results, same.results, strict=True):
                old.replace_all_uses_with(new)
            inner.detach()
            inner.erase()
        for inner in reversed(own):
            if not any(result.first_use for result in inner.results):
                inner.detach()
                inner.erase()


def use_captured_values(op: WarpSpecializeOp) -> None:
    """Let the partitions use captured values in the place of arguments, which they then have none of."""
    partitions = op.partitions
    for region in partitions.partition_regions:
        block = region.blocks[0]
        for argument, value in zip(tuple(block.args), partitions.explicit_captures, strict=True):
            argument.replace_all_uses_with(value)
            block.erase_arg(argument)
    partitions.operands = []


@dataclass
class _Known:
    """Operations that are computed before the tasks."""

    ops: dict[_Key, Operation] = field(default_factory=dict[_Key, Operation])
    """The first operation that computes something."""
    equal: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Results of the others to those of the first."""


def _known(op: Operation) -> _Known:
    known = _Known()
    for outer in _before(op):
        if (key := _key(outer, known.equal)) is not None:
            first = known.ops.setdefault(key, outer)
            if first is not outer:
                known.equal.update(zip(outer.results, first.results, strict=True))
    return known


def _before(op: Operation) -> Iterator[Operation]:
    """The operations before an operation, in the blocks around it and then in its own."""
    block = op.parent
    if block is None:
        return
    if (parent := block.parent_op()) is not None:
        yield from _before(parent)
    for other in block.ops:
        if other is op:
            return
        yield other


def _key(op: Operation, equal: Mapping[SSAValue, SSAValue]) -> _Key | None:
    """Return what two pure operations have in common when they compute the same; None where that can't be said."""
    if op.regions or not op.results or not is_side_effect_free(op) or isinstance(op, ReplicaIdOp):
        return None
    operands = tuple(equal.get(operand, operand) for operand in op.operands)
    return type(op), operands, tuple(op.result_types), tuple(_sorted(op.properties.items()))


def _sorted(items: Iterable[tuple[str, Attribute]]) -> list[tuple[str, Attribute]]:
    return sorted(items, key=lambda item: item[0])
