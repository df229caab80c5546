"""Transfers between blocks and tensors or pipes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ..dialects import ttl
from ..language import buffers
from .calls import Call, lowering, method
from .tiles import check_usable
from .values import NONE, Acquired, Buffer, Piece, Pipe, Tensor, Transfer, TransferGroup, Value, shape_text, unit_of
from .visitor import Visitor


@lowering("ttl.copy")
def _copy(call: Call) -> Value:
    visitor = call.visitor
    visitor.in_thread(call.node, "ttl.copy", "datamovement")
    src, dst = (_side(call, name) for name in ("src", "dst"))
    blocks = [isinstance(each, Acquired) for each in (src, dst)]
    if blocks == [True, True]:
        raise call.error(
            None, "one side is a tensor or a pipe, found a block on both: the compute thread stores blocks"
        )
    if blocks == [False, False]:
        raise call.error(
            None,
            f"one side is a block of a circular buffer, found {src.describe()} and {dst.describe()}: "
            "copy through a block that was reserved",
        )
    reads = blocks[1]
    name = "dst" if reads else "src"
    block = dst if reads else src
    assert isinstance(block, Acquired)
    _check_block(call, name, block, reads=reads)
    far = src if reads else dst
    if isinstance(far, Pipe):
        value, indices = far.ssa, ()
    else:
        assert isinstance(far, Piece)
        _check_piece(call, "src" if reads else "dst", far, block)
        indices = tuple(visitor.index(call.node, each, "an index") for each in far.starts)
        value = _accessor(visitor, far.tensor)
    visitor.locate(call.node)
    made = ttl.CopyOp(value, block.ssa, indices) if reads else ttl.CopyOp(block.ssa, value, (), indices)
    if reads:
        block.state.stored.add(visitor.builder.block)
    return Transfer(visitor.builder.insert(made).handle)


def _side(call: Call, name: str) -> Piece | Pipe | Acquired:
    """A side of the copy."""
    value = call[name]
    match value:
        case Piece() | Pipe() | Acquired():
            return value
        case Tensor(name=tensor):
            raise call.error(name, f"say which piece of the tensor '{tensor}' is copied: '{tensor}[r0:r1, c0:c1]'")
        case Buffer():
            verb = "reserve" if name == "dst" else "wait"
            raise call.error(name, f"expected a block, found {value.describe()}: get one with '.{verb}()'")
        case _:
            raise call.error(
                name, f"'{name}' is a block, a piece of a tensor of the kernel, or a pipe, found {value.describe()}"
            )


def _check_block(call: Call, name: str, block: Acquired, *, reads: bool) -> None:
    check_usable(call.visitor, call.at(name), block)
    if block.reserved != reads and not (not reads and block.reserved and block.state.stored):
        right = "reserved" if reads else "waited for"
        raise call.error(
            name, f"{'writing to' if reads else 'reading'} a block needs one that was {right}, found {block.describe()}"
        )


def _check_piece(call: Call, name: str, piece: Piece, block: Acquired) -> None:
    """The piece has the block's shape, and the same unit."""
    tensor, spec = piece.tensor, piece.tensor.spec
    unit, shape = unit_of(spec), piece.sizes
    if shape is None:
        shards = spec.layout.tiles_per_shard
        shape = shards if shards is not None else (1, spec.shape[-1]) if spec.layout.kind == "interleaved" else (1, 1)
    if unit != block.unit:
        raise call.error(
            name,
            f"{tensor.describe()} has pieces of {shape_text(shape, unit)}, but the block has "
            f"{shape_text(block.shape, block.unit)}: make its buffer like the tensor",
        )
    if ttl.aligned(shape, len(block.shape)) == block.shape or ttl.aligned(block.shape, len(shape)) == shape:
        return
    message = f"the block has {shape_text(block.shape, unit)}, found a piece of {shape_text(shape, unit)}"
    if shape == (1, 1) and len(block.shape) == 2:
        rows, columns = block.shape
        message += f": {tensor.name}[r, c] is a single tile, write {tensor.name}[r:r+{rows}, c:c+{columns}]"
    raise call.error(name, message)


def _accessor(visitor: Visitor, tensor: Tensor) -> SSAValue:
    """The accessor of a tensor, which the kernel's own body makes."""
    if tensor.accessor is None:
        with visitor.builder.outermost():
            tensor.accessor = visitor.builder.insert(ttl.TensorAccessorOp(tensor.ssa)).result
        tensor.accessor.name_hint = f"{tensor.name}_accessor"
    return tensor.accessor


@method(Transfer, buffers.Transfer, "wait")
def _wait(transfer: Transfer, call: Call) -> Value:
    call.visitor.in_thread(call.node, "waiting for a transfer", "datamovement")
    call.visitor.builder.insert(ttl.WaitOp(transfer.ssa))
    return NONE


@lowering("ttl.GroupTransfer")
def _group(call: Call) -> Value:
    call.visitor.in_thread(call.node, "a group of transfers", "datamovement")
    return TransferGroup()


@method(TransferGroup, buffers.GroupTransfer, "add")
def _add(group: TransferGroup, call: Call) -> Value:
    transfer = call["xf"]
    if not isinstance(transfer, Transfer):
        raise call.error("xf", f"a group is of transfers that were begun, found {transfer.describe()}")
    if group.is_done:
        raise call.error(None, "the group was waited for: make another one")
    assert isinstance(transfer.ssa.type, ttl.TransferHandleType)
    group.directions[transfer.ssa.type.direction] = None
    return NONE


@method(TransferGroup, buffers.GroupTransfer, "wait_all")
def _wait_all(group: TransferGroup, call: Call) -> Value:
    if group.is_done:
        raise call.error(None, "the group was waited for already")
    group.is_done = True
    # The hardware waits for all transfers of a direction.
    for direction in group.directions:
        call.visitor.builder.insert(ttl.DMABarrierOp(direction))
    return NONE
