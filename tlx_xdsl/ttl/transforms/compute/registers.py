"""Destination registers for the body of a `ttl.compute`: the choice of an allocation, and the body that has it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, NamedTuple, cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at, location_of, source_location
from tlx_xdsl.transforms.rewriting import retype
from tlx_xdsl.ttl.analysis.dst_capacity import kernel_around
from tlx_xdsl.ttl.analysis.dst_liveness import Node, Overflow, Plan, allocate
from tlx_xdsl.ttl.analysis.dst_orders import orders
from tlx_xdsl.ttl.dialects import ttl
from tlx_xdsl.ttl.dialects.ttcore import is_float, register_bytes

FPUChoice = Literal["auto", "always", "never"]
"""When the matrix unit adds, subtracts and multiplies: wherever it can, or for tiles of 16 bits only, or never."""
_FPU_BYTES = 2
"""Bytes of an element that the matrix unit takes as it is; it shortens wider ones."""


class Way(NamedTuple):
    """An allocation, and whether it uses the matrix unit."""

    fpu: bool
    plan: Plan


def best_plan(compute: ttl.ComputeOp, capacity: int, fpu: FPUChoice) -> Way | Overflow:
    """The first allocation that fits: in program order, in another one, with tiles that are loaded several times,
    and at last without the matrix unit, whose results may not share registers. If none fits, what is missing first.
    """
    found: Overflow | None = None
    for way, result in _ways(compute, capacity, fpu):
        if isinstance(result, Plan):
            return Way(way, result)
        found = found or result
    assert found is not None, "there is a way to try"
    return found


def _ways(compute: ttl.ComputeOp, capacity: int, fpu: FPUChoice) -> Iterator[tuple[bool, Plan | Overflow]]:
    outputs = _outputs(compute)
    for use_fpu in {"auto": [True, False], "always": [True], "never": [False]}[fpu]:
        nodes = [_node(op, uses_fpu(op, fpu) and use_fpu) for op in tile_ops(compute)]
        for reload in (False, True):
            for order in orders(nodes, outputs):
                yield use_fpu, allocate(order, outputs, capacity, reload=reload)


def tile_ops(compute: ttl.ComputeOp) -> list[ttl.TileOp]:
    """The operations of the body."""
    return [op for op in compute.body.block.ops if isinstance(op, ttl.TileOp)]


def _yield(compute: ttl.ComputeOp) -> ttl.YieldOp:
    end = compute.body.block.last_op
    assert isinstance(end, ttl.YieldOp), "checked by the verifier"
    return end


def _outputs(compute: ttl.ComputeOp) -> Sequence[SSAValue]:
    return tuple(_yield(compute).tiles)


def uses_fpu(op: ttl.TileOp, fpu: FPUChoice) -> bool:
    """Return whether the matrix unit is to do an operation: both operands must come straight from circular buffers."""
    if not isinstance(op, ttl.TileBinaryOp) or op.FPU is None or fpu == "never":
        return False
    type_ = ttl.tile_of(op.result.type).data_type
    is_chosen = is_float(type_) and (fpu == "always" or register_bytes(type_) == _FPU_BYTES)
    return is_chosen and all(isinstance(each, BlockArgument) for each in op.operands)


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
    end = _yield(compute)
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
            is_fpu = way.fpu and uses_fpu(op, fpu)
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
            *(f"in use: {_named(compute, _value(value))}" for value in found.alive),
            _suggestion(compute),
        ],
    )


def _suggestion(compute: ttl.ComputeOp) -> str:
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


def _named(compute: ttl.ComputeOp, value: SSAValue) -> str:
    """A tile in words, with its line."""
    if isinstance(value, BlockArgument):
        view = [*compute.inputs, *compute.outputs][value.index]
        name, place = f"a tile of {_hint(view, 'an input')}", source_location(location_of(view))
    else:
        name, place = _hint(value, f"the result of {_owner(value).name}"), source_location(location_of(value))
    return name if place is None else f"{name} ({place})"


def _hint(value: SSAValue, otherwise: str) -> str:
    return otherwise if value.name_hint is None else f"%{value.name_hint}"
