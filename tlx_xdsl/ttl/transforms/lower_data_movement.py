"""`ttl-lower-data-movement`: copies become transfers on the network on chip.

Before:
```mlir
func.func @read(%a_cb: !ttl.cb<...>, %a_acc: !ttl.tensor_accessor<...>, %id: index) {
  %view = ttl.cb_reserve %a_cb : !ttl.cb<...> -> memref<1x1x!ttcore.tile<32x32, f32>>
  %xf = ttl.copy %a_acc[%id], %view : ... -> !ttl.transfer_handle<read>
  ttl.wait %xf
```
After:
```mlir
  %cb = builtin.unrealized_conversion_cast %a_cb : !ttl.cb<...> to !ttkernel.cb<2, !ttcore.tile<32x32, f32>>
  %args = ttkernel.TensorAccessorArgs() {cta = 3 : i32, crta = 0 : i32} : () -> !ttkernel.TensorAccessorArgs
  %base = ttkernel.get_common_arg_val() {index = 0 : i32} : () -> i32
  %acc = ttkernel.TensorAccessor(%args, %base, %c4096) {...} : ... -> !ttkernel.TensorAccessor
  %view = ttl.cb_reserve %a_cb : ...
  %l1 = ttkernel.get_write_ptr(%cb) : ... -> i32
  ttkernel.noc_async_read_tile(%number, %acc, %l1) : (i32, !ttkernel.TensorAccessor, i32) -> ()
  ttl.dma_barrier read
```
Copies of tensors are in `tensor_copies`, those through pipes in `pipe_copies`. What only the source or the receivers
of a pipe do becomes an `scf.if` on the core's coordinates (`coordinates`). Waiting for one transfer becomes waiting
for all of its direction, which is what the hardware has; a receiver waits for a semaphore, which is in the program
already.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, forward, insert_before, ops_of, replace

from ..dialects.ttkernel.base import NOC, ThreadAttr, ThreadKind
from ..dialects.ttl.base import THREAD
from ..dialects.ttl.buffers import CopyOp, DMABarrierOp, WaitOp
from ..dialects.ttl.kernel import KernelDriverOp
from ..dialects.ttl.pipes import BlockAddressOp, CreatePipeOp, IfDstOp, IfSrcOp, PipeYieldOp
from ..dialects.ttl.types import Direction, PipeType
from .coordinates import is_at, lower_coordinates
from .tensor_copies import lower_send, lower_tensor_copy, pipe_of
from .thread_function import ThreadFunction, integer, thread_functions
from .views import Views


class LowerDataMovementPass(Pass):
    """Lower copies, pipes and coordinates in the threads of the module's drivers."""

    name = "ttl-lower-data-movement"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for a copy that no transfer can make.
        """
        threads = [*thread_functions(op)]
        _choose_networks(threads)
        receivers = _receivers(threads)
        for thread in threads:
            _lower_copies(thread, receivers)
            _lower_addresses(thread)
            _lower_branches(thread)
            lower_coordinates(thread)


def _choose_networks(threads: list[ThreadFunction]) -> None:
    """Give the second thread that moves data NOC_1, as TT-Metalium's writers have it; the first one has NOC_0."""
    moving: dict[KernelDriverOp, list[ThreadFunction]] = {}
    for thread in threads:
        if thread.function.attributes[THREAD] == ThreadAttr(ThreadKind.NOC):
            moving.setdefault(thread.driver, []).append(thread)
    for _, *second in moving.values():
        for thread in second:
            thread.function.attributes[NOC] = integer(1)


def _receivers(threads: list[ThreadFunction]) -> dict[CreatePipeOp, SSAValue]:
    """The circular buffer, in the driver, in which the blocks of each pipe are received."""
    found: dict[CreatePipeOp, SSAValue] = {}
    # Receivers that report where their blocks are may have them in several.
    reported = {
        pipe_of(thread, op.far, op)
        for thread in threads
        for op in ops_of(thread.function, CopyOp)
        if op.direction is Direction.WRITE and isinstance(op.far.type, PipeType) and op.indices
    }
    for thread in threads:
        views = Views(thread)
        for op in ops_of(thread.function, CopyOp):
            if op.direction is Direction.READ and isinstance(op.far.type, PipeType):
                buffer = views.buffer(op.view, op)
                pipe = pipe_of(thread, op.far, op)
                if found.setdefault(pipe, buffer) is not buffer and pipe not in reported:
                    raise error_at(op, "this pipe's blocks are received into two circular buffers: use a pipe for each")
    return found


def _lower_copies(thread: ThreadFunction, receivers: dict[CreatePipeOp, SSAValue]) -> None:
    views = Views(thread)
    for op in ops_of(thread.function, CopyOp):
        is_received = op.direction is Direction.READ and isinstance(op.far.type, PipeType)
        if not isinstance(op.far.type, PipeType):
            lower_tensor_copy(thread, views, op)
        elif not is_received:
            lower_send(thread, views, op, receivers.get(pipe_of(thread, op.far, op)))
        elif op.synchronized is None:
            raise error_at(
                op, "nothing says when this block has arrived: run ttl-infer-pipe-semaphores, or wait for a semaphore"
            )
        for use in list(op.handle.uses):
            wait = use.operation
            if not isinstance(wait, WaitOp):
                raise error_at(wait, f"a transfer can be waited for only, '{wait.name}' does something else with it")
            if not is_received:
                insert_before(wait, DMABarrierOp(op.direction))
            Rewriter.erase_op(wait)
        Rewriter.erase_op(op)


def _lower_addresses(thread: ThreadFunction) -> None:
    views = Views(thread)
    for op in ops_of(thread.function, BlockAddressOp):
        forward(op, views.address(op.view, op))


def _lower_branches(thread: ThreadFunction) -> None:
    for op in ops_of(thread.function, IfSrcOp, IfDstOp):
        pipe = pipe_of(thread, op.pipe, op)
        first, last = pipe.sources if isinstance(op, IfSrcOp) else pipe.receivers
        condition = is_at(thread, op, first, last)
        block = op.body.block
        if isinstance(end := block.last_op, PipeYieldOp):
            replace(end, scf.YieldOp())
        else:
            end = scf.YieldOp()
            end.location = op.location
            block.add_op(end)
        replace(op, scf.IfOp(condition, [], op.detach_region(op.body)))
