"""The handlers of operations, by their class."""

from __future__ import annotations

from functools import singledispatch

from xdsl.ir import Block, Operation

from tlx_xdsl.text.diagnostics import error_at

from ..state import State, is_tensor


@singledispatch
def bufferize(op: Operation, state: State) -> None:
    """Put an operation on memory before one on tensors.

    A handler finds the places of the operands by `State.place`, chooses those of the results and hands them to
    `State.put`, and gives the operation to `State.remove`.

    Raises CompilationError for an operation on tensors that has no handler.
    """
    if any(map(is_tensor, (*op.operands, *op.results))):
        raise error_at(op, f"'{op.name}' has no form on memory: bufferization does not know it")
    for region in op.regions:
        for block in region.blocks:
            bufferize_block(block, state)


def bufferize_block(block: Block, state: State) -> None:
    """Bufferize the operations of a block, in their order."""
    for op in list(block.ops):
        if state.liveness.is_known(op):
            bufferize(op, state)
