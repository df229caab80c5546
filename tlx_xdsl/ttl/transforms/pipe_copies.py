"""Copies through pipes: the sender writes into the memories of the receivers.

A circular buffer has one address on all cores, so the block that the receivers reserve is where the sender's block of
that buffer is. What the receivers do for a copy is to wait for a semaphore, which is in the program already.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.text.diagnostics import error_at

from ..dialects.ttkernel.noc import (
    GetNocAddrOp,
    GetNocMulticastAddrOp,
    NocAsyncWriteMulticastLoopbackSrcOp,
    NocAsyncWriteMulticastOp,
    NocAsyncWriteOp,
)
from ..dialects.ttkernel.types import NocAddressType
from ..dialects.ttl.buffers import BindCBOp, CopyOp
from ..dialects.ttl.pipes import CreatePipeOp, IfSrcOp
from ..dialects.ttl.types import CBType
from .emitter import Emitter
from .thread_function import ThreadFunction
from .views import Views


def pipe_of(thread: ThreadFunction, value: SSAValue, user: Operation) -> CreatePipeOp:
    """The operation that made a pipe, in the driver."""
    owner = thread.origin(value).owner
    if not isinstance(owner, CreatePipeOp):
        raise error_at(
            user, f"{user.name} needs a pipe that is known when the kernel is compiled: make it in the kernel"
        )
    return owner


def lower_send(thread: ThreadFunction, views: Views, op: CopyOp, receiver: SSAValue | None) -> None:
    """Emit the write of a block to the receivers of a pipe, which take it in the buffer `receiver`."""
    pipe = pipe_of(thread, op.far, op)
    _check_is_sender(op)
    emit = thread.emitter(op)
    buffer = views.type(op.view, op)
    source = views.address(op.view, op)
    destination = _receivers_address(thread, views, op, source, receiver)
    size = emit.i32(buffer.block_pages * buffer.page_bytes)
    my_x, my_y = thread.virtual(op)
    (x0, y0), (x1, y1) = pipe.dst_range

    def place(own: SSAValue, coordinate: int, of_source: int) -> SSAValue:
        # This runs on the sender only, whose logical coordinates the pipe says.
        return emit.i32(emit.add(own, coordinate - of_source, i32))

    source_x, source_y = pipe.src
    start = [place(my_x, x0, source_x), place(my_y, y0, source_y)]
    if (x0, y0) == (x1, y1):
        # A multicast to one core may never end on the hardware.
        address = GetNocAddrOp(operands=[*start, destination], result_types=[NocAddressType()])
        emit.add_op(NocAsyncWriteOp(operands=[source, emit.result(address), size]))
        return
    corners = [*start, place(my_x, x1, source_x), place(my_y, y1, source_y)]
    address = GetNocMulticastAddrOp(operands=[*corners, destination], result_types=[NocAddressType()])
    class_ = NocAsyncWriteMulticastLoopbackSrcOp if pipe.has_loopback else NocAsyncWriteMulticastOp
    count = emit.i32(len(pipe.destinations))
    emit.add_op(class_(operands=[source, emit.result(address), size, count]))


def _check_is_sender(op: CopyOp) -> None:
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, IfSrcOp) and parent.pipe is op.far:
            return
        parent = parent.parent_op()
    raise error_at(op, "a block is sent through a pipe by its source only: copy to the pipe inside of its if_src")


def _receivers_address(
    thread: ThreadFunction, views: Views, op: CopyOp, source: SSAValue, receiver: SSAValue | None
) -> SSAValue:
    own = views.buffer(op.view, op)
    if receiver is None:
        raise error_at(op, "nothing receives what is sent through this pipe: copy from the pipe inside of its if_dst")
    if receiver is own:
        return source
    bind = receiver.owner
    type_ = receiver.type
    assert isinstance(bind, BindCBOp) and isinstance(type_, CBType)
    if type_.buffer_factor > 1 or bind.l1_address is None:
        raise error_at(
            op,
            "the receivers' block is in another circular buffer, which has room for "
            f"{type_.buffer_factor} blocks: receive into the buffer that is sent from, or use buffer_factor=1",
        )
    return Emitter(thread.constants, op).i32(bind.l1_address.value.data)
