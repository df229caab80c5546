"""Destination registers for the body of a `ttl.compute`: the choice of an allocation, and the body that has it."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Sequence
from typing import Literal, NamedTuple, cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at, location_of, source_location
from tlx_xdsl.transforms.rewriting import retype
from tlx_xdsl.ttl.analysis.dst_capacity import kernel_around
from tlx_xdsl.ttl.analysis.dst_liveness import Node, Overflow, Plan, allocate
from tlx_xdsl.ttl.analysis.dst_orders import orders
from tlx_xdsl.ttl.analysis.dst_spilling import cut
from tlx_xdsl.ttl.dialects import ttl
from tlx_xdsl.ttl.dialects.ttcore import is_float, register_bytes

from .parts import made_for, tile_ops, yielded
from .tiling import parallel

FPUChoice = Literal["auto", "always", "never"]
"""When the matrix unit adds, subtracts and multiplies: wherever it can, or for tiles of 16 bits only, or never."""
_FPU_BYTES = 2
"""Bytes of an element that the matrix unit takes as it is; it shortens wider ones."""


class Way(NamedTuple):
    """An allocation, and whether it uses the matrix unit."""

    fpu: bool
    plan: Plan


def best_plan(
    compute: ttl.ComputeOp, capacity: int, fpu: FPUChoice, outputs: Sequence[SSAValue] | None = None
) -> Way | Overflow:
    """The first allocation that fits: in program order, in another one, with tiles that are loaded several times,
    and at last without the matrix unit, whose results may not share registers. If none fits, what is missing first.

    `outputs` are some of the tiles that the body gives, without the others; all by default.
    """
    values = yielded(compute) if outputs is None else outputs
    ops = tile_ops(compute)
    if outputs is not None:
        ops = [op for op in ops if op.result in made_for(outputs)]
    found: Overflow | None = None
    for way, result in _ways(ops, values, capacity, fpu):
        if isinstance(result, Plan):
            return Way(way, result)
        found = found or result
    assert found is not None, "there is a way to try"
    return found


def _ways(
    ops: Sequence[ttl.TileOp], outputs: Sequence[SSAValue], capacity: int, fpu: FPUChoice
) -> Iterator[tuple[bool, Plan | Overflow]]:
    for use_fpu in _UNITS[fpu]:
        nodes = _nodes(ops, fpu if use_fpu else "never")
        for reload in (False, True):
            for order in orders(nodes, outputs):
                yield use_fpu, allocate(order, outputs, capacity, reload=reload)


_UNITS = {"auto": [True, False], "always": [True], "never": [False]}
"""Whether the matrix unit is used, in the order of what is tried."""


def parts_that_fit(compute: ttl.ComputeOp, capacity: int, fpu: FPUChoice) -> list[list[int]] | None:
    """The numbers of the operations of a compute in parts that registers suffice for, in order.

    None where that is not needed, because one for each output would do, or not possible.
    """
    outputs = yielded(compute)
    if len(parallel(compute)) < len(compute.iterator_types):
        return None
    ways = [[outputs], [[value] for value in outputs]]
    if any(all(isinstance(best_plan(compute, capacity, fpu, each), Way) for each in way) for way in ways):
        return None

    def fits(nodes: Sequence[Node], wanted: Sequence[Hashable]) -> bool:
        ops = [_owner(node.result) for node in nodes]
        return any(
            isinstance(allocate(_nodes(ops, fpu if use_fpu else "never"), wanted, capacity, reload=reload), Plan)
            for use_fpu in _UNITS[fpu]
            for reload in (False, True)
        )

    needed = made_for(outputs)
    ops = tile_ops(compute)
    numbers: dict[Hashable, int] = {op.result: number for number, op in enumerate(ops)}
    found = cut(_nodes([op for op in ops if op.result in needed], "never"), outputs, fits)
    return None if found is None else [[numbers[node.result] for node in part] for part in found.parts]


def _nodes(ops: Sequence[ttl.TileOp], fpu: FPUChoice) -> list[Node]:
    """The facts of operations that an allocation is made of."""
    made = {op.result for op in ops}
    return [_node(op, uses_fpu(op, fpu, made)) for op in ops]


def uses_fpu(op: ttl.TileOp, fpu: FPUChoice, made: Container[SSAValue]) -> bool:
    """Return whether the matrix unit is to do an operation: none of its operands may be `made` in a register."""
    if not isinstance(op, ttl.TileBinaryOp) or op.FPU is None or fpu == "never":
        return False
    types = [ttl.tile_of(each.type).data_type for each in op.operands]
    is_chosen = fpu == "always" or all(register_bytes(each) == _FPU_BYTES for each in types)
    return is_chosen and all(map(is_float, types)) and not any(each in made for each in op.operands)


def _node(op: ttl.TileOp, fpu: bool) -> Node:
    return Node(
        op.result,
        tuple(op.operands[number] for number in _in_registers(op, fpu)),
        in_place=op.IN_PLACE,
        accumulates=fpu or isinstance(op, ttl.TileAccumulatingOp),
    )


def _in_registers(op: ttl.TileOp, fpu: bool) -> list[int]:
    """The numbers of the operands that are read in registers.

    What an accumulating operation adds to is in its result's register already.
    """
    if fpu:
        return []
    operands = range(len(op.operands) - isinstance(op, ttl.TileAccumulatingOp))
    return [number for number in operands if number not in op.CB_OPERANDS]


def apply_plan(compute: ttl.ComputeOp, way: Way, fpu: FPUChoice) -> None:
    """Write an allocation into the body: the order, loads and copies, and the numbers of the registers."""
    block = compute.body.block
    end = block.last_op
    assert end is not None, "a body ends in a ttl.yield"
    made = {op.result for op in tile_ops(compute)}
    for op in block.ops:
        op.detach()
    current: dict[int, SSAValue] = {}
    for step in way.plan.steps:
        if step.node is None:
            value = _value(step.value)
            op = ttl.TileCopyOp(current[step.reads[0]] if step.reads else value)
            op.location = value.owner.location if isinstance(value.owner, ttl.TileOp) else compute.location
        else:
            op = _owner(step.node.result)
            is_fpu = way.fpu and uses_fpu(op, fpu, made)
            for number, register in zip(_in_registers(op, is_fpu), step.reads, strict=True):
                op.operands[number] = current[register]
        op.register = step.register
        if isinstance(op, ttl.TileBinaryOp) and not step.reads:
            op.fpu = UnitAttr()
        current[step.register] = op.result
        block.add_op(op)
    outputs = block.args[len(compute.inputs) :]
    for number, register in enumerate(way.plan.outputs):
        end.operands[number] = _packed(current[register], outputs[number])
    block.add_op(end)


def _packed(tile: SSAValue, output: SSAValue) -> SSAValue:
    """A tile in a register as the packer takes it: with the type of the place, to which it converts floats."""
    if tile.type != output.type:
        retype(tile, output.type)
    return tile


def _value(value: Hashable) -> SSAValue:
    """The tile of the body that a node names."""
    return cast(SSAValue, value)


def _owner(value: Hashable) -> ttl.TileOp:
    owner = _value(value).owner
    assert isinstance(owner, ttl.TileOp), "nodes are operations on tiles"
    return owner


def overflow_error(compute: ttl.ComputeOp, capacity: int, found: Overflow) -> CompilationError:
    """The error for tiles that the registers don't suffice for."""
    return error_at(
        _place(compute, _value(found.wanted)),
        f"insufficient DST registers: all {capacity} in use",
        [
            *(f"in use: {named(compute, _value(value))}" for value in found.alive),
            suggestion(compute),
        ],
    )


def suggestion(compute: ttl.ComputeOp) -> str:
    """Return what makes a compute fit, as far as it is not so yet."""
    ways = ["store an intermediate block to a circular buffer and wait for it there"]
    if any(register_bytes(ttl.tile_of(each.type).data_type) > _FPU_BYTES for each in compute.body.block.args):
        ways.append("use tiles of 16 bits")
    if (kernel := kernel_around(compute)) is not None and not kernel.dst_full_sync_en:
        ways.append("set dst_full_sync_en for twice as many destination registers")
    return ", or ".join(ways)


def _place(compute: ttl.ComputeOp, value: SSAValue) -> Operation:
    """Return where a tile is needed: where it is made, or first read."""
    if isinstance(value.owner, ttl.TileOp):
        return value.owner
    reader = next((op for op in tile_ops(compute) if value in op.operands), None)
    return compute if reader is None else reader


def named(compute: ttl.ComputeOp, value: SSAValue) -> str:
    """A tile in words, with its line."""
    if isinstance(value, BlockArgument):
        view = [*compute.inputs, *compute.outputs][value.index]
        name, place = f"a tile of {_hint(view, 'an input')}", source_location(location_of(view))
    else:
        name, place = _hint(value, f"the result of {_owner(value).name}"), source_location(location_of(value))
    return name if place is None else f"{name} ({place})"


def _hint(value: SSAValue, otherwise: str) -> str:
    return otherwise if value.name_hint is None else f"%{value.name_hint}"
