"""Addresses of blocks in circular buffers.

A buffer with room for several blocks has its current block at another place each time, so addresses come from the
buffer's own pointers, right after the step of the protocol that makes them valid.
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.text.diagnostics import error_at

from ..dialects.ttkernel.buffers import GetReadPtrOp, GetWritePtrOp
from ..dialects.ttl.buffers import AcquireOp, BlockOp, acquisition_of
from ..dialects.ttl.types import CBType
from .thread_function import Emitter, Number, ThreadFunction


class Views:
    """The blocks that a thread holds."""

    def __init__(self, thread: ThreadFunction):
        self._thread = thread
        self._pointers: dict[AcquireOp, SSAValue] = {}

    def acquisition(self, view: SSAValue, user: Operation) -> AcquireOp:
        """The step that gave a view."""
        try:
            return acquisition_of(view)
        except VerifyException as error:
            raise error_at(user, f"{user.name} needs a block of a circular buffer: {error}") from error

    def buffer(self, view: SSAValue, user: Operation) -> SSAValue:
        """The circular buffer in which a view is, in the driver."""
        return self._thread.origin(self.acquisition(view, user).cb)

    def type(self, view: SSAValue, user: Operation) -> CBType:
        """The type of the circular buffer in which a view is."""
        return self.acquisition(view, user).cb_type

    def address(self, view: SSAValue, user: Operation) -> SSAValue:
        """The address of the block at the place of `user`, as an i32."""
        emit = self._thread.emitter(user)
        acquisition = self.acquisition(view, user)
        type_ = acquisition.cb_type
        offset: Number = 0
        while isinstance(owner := view.owner, BlockOp):
            offset = emit.add(offset, emit.mul(owner.index, type_.block_pages * type_.page_bytes, i32), i32)
            view = owner.view
        return emit.i32(emit.add(self._pointer(acquisition), offset, i32))

    def _pointer(self, acquisition: AcquireOp) -> SSAValue:
        if acquisition not in self._pointers:
            cb = self._thread.cb(acquisition.cb, acquisition)
            pointer = GetWritePtrOp if acquisition.PRODUCES else GetReadPtrOp
            emit = Emitter(self._thread.constants, acquisition, InsertPoint.after(acquisition))
            self._pointers[acquisition] = emit.result(pointer(operands=[cb], result_types=[i32]))
        return self._pointers[acquisition]
