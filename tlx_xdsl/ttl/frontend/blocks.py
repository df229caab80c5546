"""Circular buffers and their blocks."""

from __future__ import annotations

import ast
from dataclasses import replace
from math import prod
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Attribute, Block, SSAValue

from tlx_xdsl.errors import InputTypeError

from ..dialects import ttl
from ..dialects.ttcore import TileType, is_float
from ..dialects.ttl.types import CBType
from ..language import buffers
from ..language.tensors import TILE, as_dtype
from .calls import Call, lowering, method, static
from .tiles import as_tiles, check_usable, fill
from .values import (
    NONE,
    Acquired,
    BlockState,
    Buffer,
    Index,
    Items,
    Static,
    Tensor,
    Tiles,
    Value,
    element_type,
    in_tiles,
    shape_text,
    unit_of,
)
from .visitor import ThreadState, Visitor

# --- making circular buffers ----------------------------------------------------------------------------------------


@lowering("ttl.make_circular_buffer_like")
def _make_like(call: Call) -> Value:
    return _like(call, "buffer_factor")


@lowering("ttl.make_dataflow_buffer_like")
def _make_dataflow_like(call: Call) -> Value:
    return _like(call, "block_count")


def _like(call: Call, factor: str) -> Value:
    like = call["like"]
    match like:
        case Tensor(spec=spec):
            unit = unit_of(spec)
        case Buffer(type=type_):
            unit = type_.element_type
        case _:
            raise call.error("like", f"expected a tensor of the kernel, found {like.describe()}")
    shape = _shape(call)
    if isinstance(like, Tensor) and like.spec.layout.kind == "interleaved" and shape[-1] != like.spec.shape[-1]:
        raise call.error(
            "shape",
            f"{like.describe()} is in rows: a block has whole rows of {like.spec.shape[-1]} elements, found {shape}",
        )
    return _create(call, shape, unit, _factor(call, factor))


@lowering("ttl.CircularBuffer")
def _circular_buffer(call: Call) -> Value:
    factor = "block_count" if call.given("block_count") else "buffer_factor"
    if call.given("like"):
        return _like(call, factor)
    unit: Attribute = f32
    for name in ("element", "dtype"):
        if call.given(name):
            try:
                unit = element_type(as_dtype(static(call, name)))
            except InputTypeError as error:
                raise call.error(name, str(error)) from error
    if call.given("element") and call.given("dtype"):
        raise call.error("dtype", "'element' and 'dtype' are the same: give one of them")
    tiled = static(call, "tiled")
    return _create(call, _shape(call), TileType.get(unit) if tiled else unit, _factor(call, factor))


@lowering("ttl.make_dfb")
def _make_dfb(call: Call) -> Value:
    if static(call, "tile") != (TILE, TILE):
        raise call.error("tile", f"a tile has {TILE}x{TILE} elements, found {static(call, 'tile')}")
    try:
        unit = TileType.get(element_type(as_dtype(static(call, "dtype"))))
    except InputTypeError as error:
        raise call.error("dtype", str(error)) from error
    return _create(call, _shape(call), unit, _factor(call, "block_count"))


def _create(call: Call, shape: tuple[int, ...], unit: Attribute, factor: int) -> Value:
    if call.visitor.thread is not None:
        raise call.error(None, "circular buffers are shared by the threads: make them in the kernel's own body")
    made = Buffer(call.visitor.builder.insert(ttl.CreateCBOp(CBType.get(shape, unit, factor))).result)
    call.visitor.unit.buffers.append(made)
    return made


def _shape(call: Call) -> tuple[int, ...]:
    given = call["shape"]
    wanted = "'shape' is two or more positive integers (..., rows, columns)"
    if not isinstance(given, Items):
        raise call.error("shape", f"{wanted}, found {given.describe()}")
    sizes = tuple(call.visitor.static_int(call.at("shape"), each, "a size of 'shape'") for each in given.items)
    if len(sizes) < 2 or min(sizes) < 1:
        raise call.error("shape", f"{wanted}, found {sizes}")
    return sizes


def _factor(call: Call, name: str) -> int:
    factor = call.visitor.static_int(call.at(name), call[name], f"'{name}'")
    if factor < 1:
        raise call.error(name, f"'{name}' is the number of blocks for which there is room, at least 1, found {factor}")
    return factor


# --- the protocol ---------------------------------------------------------------------------------------------------


def _blocks(call: Call) -> int | None:
    if not call.given("blocks"):
        return None
    count = call.visitor.static_int(call.at("blocks"), call["blocks"], "'blocks'")
    return None if count == 1 else count


@method(Buffer, buffers.CircularBuffer, "wait", "reserve")
def _acquire(buffer: Buffer, call: Call) -> Value:
    reserved = call.name == "reserve"
    visitor = call.visitor
    thread = visitor.in_thread(call.node, f"'{call.name}' of a circular buffer")
    op = ttl.CBReserveOp if reserved else ttl.CBWaitOp
    count = _blocks(call)
    view = visitor.builder.insert(op(buffer.ssa, count)).view
    if count is not None:
        views = [visitor.builder.insert(ttl.BlockOp(view, visitor.builder.constant(i))).result for i in range(count)]
    else:
        views = [view]
    made = [Acquired(each, buffer, reserved, BlockState(visitor.builder.block)) for each in views]
    if thread.kind == "compute" and not reserved and not buffer.type.is_tiled:
        made = [replace(each, tiles=_tilized(visitor, call.node, each)) for each in made]
    thread.held.setdefault((buffer.ssa, reserved), []).extend(made)
    thread.acquired.extend(made)
    return made[0] if count is None else Items([*made])


@method(Buffer, buffers.CircularBuffer, "push", "pop")
def _release_buffer(buffer: Buffer, call: Call) -> Value:
    reserved = call.name == "push"
    thread = call.visitor.in_thread(call.node, f"'{call.name}' of a circular buffer")
    count = _blocks(call)
    held = thread.held.get((buffer.ssa, reserved), [])
    for block in held[: count or 1]:
        _give_back(call.visitor, call.node, block)
    _insert_release(call.visitor, buffer, reserved, count)
    return NONE


def _insert_release(visitor: Visitor, buffer: Buffer, reserved: bool, count: int | None = None) -> None:
    op = ttl.CBPushOp if reserved else ttl.CBPopOp
    visitor.builder.insert(op(buffer.ssa, count))


@method(Acquired, buffers.Block, "push", "pop")
def _release_block(block: Acquired, call: Call) -> Value:
    if block.reserved != (call.name == "push"):
        right, done = ("push", "reserved") if block.reserved else ("pop", "waited for")
        raise call.error(None, f"this block was {done}: give it back with '.{right}()'")
    release(call.visitor, call.node, block)
    return NONE


def release(visitor: Visitor, node: ast.AST, block: Acquired) -> None:
    """Give a block back: push what was reserved, pop what was waited for."""
    check_usable(visitor, node, block)
    _give_back(visitor, node, block)
    visitor.locate(node)
    _insert_release(visitor, block.buffer, block.reserved)


def _give_back(visitor: Visitor, node: ast.AST, block: Acquired) -> None:
    """Record that a block is given back at `node`; what is pushed must have been written."""
    thread = visitor.in_thread(node, "giving a block back")
    if block.reserved and not block.state.stored:
        how = "stored to it ('.store(...)')" if thread.kind == "compute" else "copied to it (ttl.copy)"
        raise visitor.error(node, f"a block of {block.buffer.describe()} is pushed, but nothing was {how}")
    if block.state.block is visitor.builder.block:
        # In a branch or a loop it may still be there afterwards.
        block.state.released = node
        held = thread.held[block.buffer.ssa, block.reserved]
        if block in held:
            held.remove(block)


# --- blocks of the compiler's own, in buffers of its own --------------------------------------------------------------


def own_buffer(visitor: Visitor, name: str | None, type_: TensorType[Attribute], blocks: int) -> Buffer:
    """A buffer for blocks of a type of tiles."""
    with visitor.builder.outermost():
        cb_type = CBType.get(tuple(type_.get_shape()), type_.get_element_type(), blocks)
        made = visitor.builder.insert(ttl.CreateCBOp(cb_type, internal=True))
    made.result.name_hint = name
    return Buffer(made.result)


def push_value(visitor: Visitor, node: ast.AST, buffer: Buffer, value: Tiles) -> None:
    """Store a value to a block of a buffer, and push it."""
    view = visitor.builder.insert(ttl.CBReserveOp(buffer.ssa)).view
    block = Acquired(view, buffer, True, BlockState(visitor.builder.block))
    store(visitor, node, block, value, node, accumulate=False)
    visitor.builder.insert(ttl.CBPushOp(buffer.ssa))


def wait_block(visitor: Visitor, buffer: Buffer) -> Acquired:
    """Wait for a block of a buffer; the compiler pops it after its last use."""
    view = visitor.builder.insert(ttl.CBWaitOp(buffer.ssa)).view
    return Acquired(view, buffer, False, BlockState(visitor.builder.block))


# --- blocks of rows, which are computed with as tiles -----------------------------------------------------------------


def _in_tiles(visitor: Visitor, node: ast.AST, block: Acquired) -> TensorType[Attribute]:
    """The type of a block of rows as tiles."""
    type_ = in_tiles(block.type)
    if type_ is None:
        raise visitor.error(
            node,
            f"a block of rows that is computed with has multiples of {TILE} rows and columns of f32 or bf16, found "
            f"{shape_text(block.shape, block.unit)}",
        )
    return type_


def _tilized(visitor: Visitor, node: ast.AST, block: Acquired) -> Tiles:
    """The tiles of a block of rows that was waited for, in a buffer of the compiler's own."""
    buffer = own_buffer(visitor, f"{block.buffer.ssa.name_hint or 'rows'}_tiles", _in_tiles(visitor, node, block), 1)
    view = visitor.builder.insert(ttl.CBReserveOp(buffer.ssa)).view
    visitor.builder.insert(ttl.TilizeOp(block.ssa, view))
    visitor.builder.insert(ttl.CBPushOp(buffer.ssa))
    return wait_block(visitor, buffer)


def _store_rows(visitor: Visitor, node: ast.AST, block: Acquired, value: Tiles, *, accumulate: bool) -> None:
    """Write tiles to a reserved block of rows, by way of a buffer of the compiler's own."""
    if accumulate:
        raise visitor.error(node, "the packer adds to tiles, the block has rows: add to a value, and store that once")
    if prod(value.shape[:-1]) != 1:
        raise visitor.error(
            node, f"one row of tiles is stored as rows of elements, found {value.describe()}: reserve {TILE} rows"
        )
    buffer = own_buffer(visitor, f"{block.buffer.ssa.name_hint or 'rows'}_tiles", value.type, 1)
    push_value(visitor, node, buffer, value)
    visitor.locate(node)
    visitor.builder.insert(ttl.UntilizeOp(wait_block(visitor, buffer).ssa, block.ssa))
    block.state.stored.add(visitor.builder.block)


# --- storing --------------------------------------------------------------------------------------------------------


@method(Acquired, buffers.Block, "store")
def _store(block: Acquired, call: Call) -> Value:
    acc = static(call, "acc")
    if not isinstance(acc, bool):
        raise call.error("acc", f"'acc' is True or False, found {acc!r}")
    store(call.visitor, call.node, block, call["value"], call.at("value"), accumulate=acc)
    return NONE


def store(
    visitor: Visitor, node: ast.AST, block: Acquired, value: Value, value_node: ast.AST, *, accumulate: bool
) -> None:
    """Write a value to a reserved block, or add it to what is there."""
    visitor.in_thread(node, "storing to a block", "compute")
    check_usable(visitor, node, block)
    if not block.reserved:
        raise visitor.error(node, f"{block.describe()} is read, not written: store to one that was reserved")
    type_ = _in_tiles(visitor, node, block)
    if isinstance(value, Static | Index):
        stored = fill(visitor, value_node, type_, value, "what is stored")
    else:
        stored = as_tiles(visitor, value_node, value, "a store", type_)
    are_floats = all(is_float(ttl.tile_of(each).data_type) for each in (stored.type, type_))
    if stored.type.get_shape() != type_.get_shape() or not (are_floats or stored.unit == type_.get_element_type()):
        raise visitor.error(
            value_node,
            f"the block has {shape_text(block.shape, block.unit)}, found a value of "
            f"{shape_text(stored.shape, stored.unit)}"
            + (": ttl.math.typecast converts" if stored.shape == block.shape else ""),
        )
    if accumulate and not are_floats:
        raise visitor.error(node, f"the packer adds floats only, the block has {shape_text(block.shape, block.unit)}")
    visitor.locate(node)
    if not block.buffer.type.is_tiled:
        _store_rows(visitor, node, block, stored, accumulate=accumulate)
        return
    first: SSAValue | None = None
    if accumulate:
        is_first = _is_first(visitor, node, block)
        accumulate = is_first is not True
        first = is_first if isinstance(is_first, SSAValue) else None
    visitor.builder.insert(ttl.StoreOp(stored.ssa, block.ssa, accumulate=accumulate, first=first))
    block.state.stored.add(visitor.builder.block)


def _is_first(visitor: Visitor, node: ast.AST, block: Acquired) -> SSAValue | bool:
    """Return whether nothing was stored to the reserved block yet, or the condition for it where loops decide."""
    frames = visitor.builder.frames
    own = next(at for at, frame in enumerate(frames) if frame.block is block.state.block)
    if any(frame.block in block.state.stored for frame in frames[own:]):
        return False
    builder = visitor.builder
    condition: SSAValue | None = None
    for frame in frames[own + 1 :]:
        if frame.loop is None:
            raise visitor.error(
                node,
                "whether this is the first addition to the block is not known, in a branch: store zeros before, with "
                "block.store(ttl.math.fill(block, 0.0))",
            )
        index, first = frame.loop
        each = builder.insert(arith.CmpiOp(index, builder.index(first), "eq")).result
        condition = each if condition is None else builder.insert(arith.AndIOp(condition, each)).result
    return True if condition is None else condition


def promote_stores(thread: ThreadState | None, inner: list[Block], outer: Block) -> None:
    """Record that what was stored to in each of the blocks `inner` of the IR is stored to once `outer` goes on."""
    for block in thread.acquired if thread is not None else ():
        if all(each in block.state.stored for each in inner):
            block.state.stored.add(outer)


def accumulate(visitor: Visitor, node: ast.AugAssign, block: Acquired, value: Value) -> None:
    """`block += value`."""
    if not isinstance(node.op, ast.Add):
        raise visitor.error(node, "a reserved block takes '+=' only: write it with '.store(...)'")
    store(visitor, node, block, value, node.value, accumulate=True)


def is_reserved(value: Any) -> bool:
    """Return whether `+=` adds to the block itself."""
    return isinstance(value, Acquired) and value.reserved
