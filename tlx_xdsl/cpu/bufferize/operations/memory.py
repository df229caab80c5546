"""Operations of `bufferization`: where tensors come from memory, and go to it."""

from __future__ import annotations

from xdsl.dialects.memref import AllocOp

from tlx_xdsl.dialects.bufferization import MaterializeInDestinationOp, ToBufferOp, ToTensorOp
from tlx_xdsl.text.diagnostics import error_at

from ..state import Buffer, Place, State, bufferize, is_tensor, memory_of


@bufferize.register
def allocation(op: AllocOp, state: State) -> None:
    """Stays; it is known because a tensor may get its place before it."""


@bufferize.register
def to_tensor(op: ToTensorOp, state: State) -> None:
    """The memory itself, where it was allocated for this tensor alone, else a copy."""
    memory, owner = op.memref, op.memref.owner
    is_private = op.restrict is not None and op.writable is not None and isinstance(owner, AllocOp)
    if is_private and isinstance(owner, AllocOp) and owner.parent is op.parent:
        place = Place(Buffer(), memory)
        final = state.final_place(op.tensor)
        if final is not None and memory.type == final.memref.type and state.may_overwrite(final, owner):
            memory.replace_all_uses_with(final.memref)
            state.remove(owner)
            place = final
        elif memory.name_hint is None:
            memory.name_hint = op.tensor.name_hint
    else:
        place = state.allocate(op.tensor.type, op, op.tensor.name_hint)
        state.copy(memory, place.memref, op)
    state.put(op.tensor, place)
    state.remove(op)


@bufferize.register
def to_buffer(op: ToBufferOp, state: State) -> None:
    """A copy, which others may write to."""
    target = state.new_memory(memory_of(op.tensor.type), op, op.buffer.name_hint)
    state.copy(state.place(op.tensor, op).memref, target, op)
    if op.buffer.type != target.type:
        raise error_at(op, f"'{op.name}' gives {target.type}, not {op.buffer.type}")
    op.buffer.replace_all_uses_with(target)
    state.remove(op)


@bufferize.register
def materialize(op: MaterializeInDestinationOp, state: State) -> None:
    """A copy, unless the tensor was made there."""
    if is_tensor(op.dest):
        raise error_at(op, f"'{op.name}' has no form on memory where its destination is a tensor")
    source = state.place(op.source, op)
    if source.memref is not op.dest:
        state.copy(source.memref, op.dest, op)
    state.remove(op)
