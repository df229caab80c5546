"""Circular buffers of the compiler's own, whose producer and consumer are one compute thread."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr, TensorType, f32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.transforms.rewriting import insert_before
from tlx_xdsl.ttl.dialects import ttl
from tlx_xdsl.ttl.dialects.ttcore import TileType

from .views import view_of


class CompilerBuffers:
    """Buffers that the compiler adds to a compute thread: for computed blocks, and for the ones of reductions."""

    def __init__(self, kernel: ttl.KernelOp, thread: ttl.ComputeThreadOp) -> None:
        self._first_thread = kernel.threads[0]
        self._thread = thread
        self._ones: dict[TileType, SSAValue] = {}
        self.waits: list[ttl.CBWaitOp] = []
        """Those for computed blocks, which are to be popped."""

    def create(self, op: Operation, tile: TileType, shape: Sequence[int]) -> SSAValue:
        """A new buffer for one block, which `op` needs."""
        type_ = ttl.CBType.get(tuple(shape), tile, 1)
        return insert_before(self._first_thread, ttl.CreateCBOp(type_, internal=True), located_at=op).result

    def reserve(self, op: Operation, cb: SSAValue, at: Operation) -> ttl.CBReserveOp:
        """A block of a buffer, for what `op` makes, reserved before `at`."""
        return view_of(insert_before(at, ttl.CBReserveOp(cb), located_at=op))

    def read(self, reserve: ttl.CBReserveOp, at: Operation) -> ttl.CBWaitOp:
        """The block after it was written, waited for before `at`."""
        insert_before(at, ttl.CBPushOp(reserve.cb), located_at=reserve)
        return view_of(insert_before(at, ttl.CBWaitOp(reserve.cb), located_at=reserve))

    def buffer(self, op: ttl.BlockComputeOp) -> tuple[ttl.CBReserveOp, SSAValue]:
        """The place of the block that `op` makes, and the block after it was written there; both before `op`."""
        type_ = op.result.type
        reserve = self.reserve(op, self.create(op, ttl.tile_of(type_), ttl.block_shape(type_)), op)
        wait = self.read(reserve, op)
        self.waits.append(wait)
        return reserve, wait.view

    def ones(self, op: ttl.ReduceOp) -> SSAValue:
        """A tile of ones, which is written once in the beginning of the thread."""
        tile = ttl.tile_of(op.result.type)
        if tile not in self._ones:
            self._ones[tile] = self._fill(op, tile)
        return self._ones[tile]

    def _fill(self, op: ttl.ReduceOp, tile: TileType) -> SSAValue:
        begin, end = self._thread.body.block.first_op, self._thread.body.block.last_op
        assert begin is not None and end is not None, "a thread ends in an operation"
        reserve = self.reserve(op, self.create(op, tile, (1, 1)), begin)
        fill = insert_before(begin, ttl.FillOp(FloatAttr(1.0, f32), TensorType(tile, [1, 1])), located_at=op)
        insert_before(begin, ttl.StoreOp(fill.result, reserve.view), located_at=op)
        wait = self.read(reserve, begin)
        insert_before(end, ttl.CBPopOp(wait.cb), located_at=op)
        return wait.view
