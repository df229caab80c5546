"""`ttl-infer-pipe-semaphores`: two semaphores for each pipe, by which its source and its receivers wait for each other.

Before:
```mlir
%p = ttl.create_pipe src=[0, 0] dst_range=[[1, 0], [3, 0]] : !ttl.pipe
ttl.if_src %p {
  %xf = ttl.copy %view, %p : tensor<...>, !ttl.pipe -> !ttl.transfer_handle<write>
  ttl.wait %xf
}
ttl.if_dst %p {
  %xf = ttl.copy %p, %view : !ttl.pipe, tensor<...> -> !ttl.transfer_handle<read>
  ttl.wait %xf
}
```
After:
```mlir
%ready = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
%valid = ttl.create_semaphore {initial = 0 : i32} : !ttl.semaphore
ttl.if_src %p {
  ttl.semaphore_wait_eq %ready, %c3
  ttl.semaphore_set %ready, %c0
  %xf = ttl.copy %view, %p : tensor<...>, !ttl.pipe -> !ttl.transfer_handle<write>
  ttl.wait %xf
  ttl.semaphore_set %valid, %c1
  ttl.semaphore_set %valid, %c1 [%x1, %y0, %x3, %y0]
}
ttl.if_dst %p {
  ttl.semaphore_set %valid, %c0
  %xf = ttl.copy %p, %view {synchronized} : !ttl.pipe, tensor<...> -> !ttl.transfer_handle<read>
  ttl.semaphore_inc %ready, %c1 [%x0, %y0]
  ttl.semaphore_wait_eq %valid, %c1
}
```
A receiver says that its block is reserved, the source waits for all of them, writes, and says that the block is there.
The receiver takes `valid` back before it says that it is ready, so that it can't take the last block for this one. A
copy that is `synchronized` moves nothing itself; `ttl-lower-data-movement` erases it. It says from where on the block
may change: barriers for what the receiver itself has begun in it stand before it, and so before the source may write.

A multicast of `valid` copies the source's own word. Where the source is a receiver, too, its receiving thread may reset
that word meanwhile: then each receiver's word is incremented instead. A single receiver gets a unicast.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr, i32
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, constant, insert_before, ops_of

from ..analysis.protocol import name_of, place_of
from ..dialects.ttcore import SEMAPHORES
from ..dialects.ttl import (
    CopyOp,
    CreatePipeOp,
    CreateSemaphoreOp,
    KernelOp,
    SemaphoreIncOp,
    SemaphoreSetOp,
    SemaphoreWaitEqOp,
    WaitOp,
)
from .pipe_ends import PipeEnds, check_ends, ends_of


class InferPipeSemaphoresPass(Pass):
    """Synchronise the pipes of every kernel."""

    name = "ttl-infer-pipe-semaphores"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for a pipe whose ends do not fit, and for too many pipes.
        """
        for kernel in ops_of(op, KernelOp):
            pipes = [ends for pipe in ops_of(kernel, CreatePipeOp) if (ends := ends_of(kernel, pipe)) is not None]
            for ends in pipes:
                check_ends(kernel, ends)
            _check_number(kernel, [ends.pipe for ends in pipes])
            for ends in pipes:
                _synchronise(ends)


def _check_number(kernel: KernelOp, pipes: list[CreatePipeOp]) -> None:
    own = len(ops_of(kernel, CreateSemaphoreOp))
    if own + 2 * len(pipes) > SEMAPHORES:
        raise error_at(
            pipes[(SEMAPHORES - own) // 2],
            f"{len(pipes)} pipes need {2 * len(pipes)} semaphores, a core has {SEMAPHORES}"
            f"{f', of which the kernel uses {own} itself' if own else ''}: use fewer pipes, or send several blocks "
            "through one",
            [f"{name_of(pipe.result)} at {place_of(pipe)}" for pipe in pipes],
        )


def _synchronise(ends: PipeEnds) -> None:
    ready, valid = _semaphores(ends.pipe)
    for copy in ends.sends:
        _send(ends.pipe, copy, ready, valid)
    for copy in ends.receives:
        _receive(ends.pipe, copy, ready, valid)


def _semaphores(pipe: CreatePipeOp) -> tuple[SSAValue, SSAValue]:
    """The semaphores `ready` and `valid` of a pipe."""
    made: list[OpResult] = []
    after: Operation = pipe
    for name in ("ready", "valid"):
        op = CreateSemaphoreOp()
        op.location = pipe.location
        op.result.name_hint = f"{pipe.result.name_hint or 'pipe'}_{name}"
        Rewriter.insert_op(op, InsertPoint.after(after))
        made.append(op.result)
        after = op
    return made[0], made[1]


class _Around:
    """Inserts operations before and after a copy."""

    def __init__(self, copy: CopyOp):
        self.copy = copy
        self.last: Operation = copy

    def number(self, number: int) -> SSAValue:
        """A constant that semaphores take."""
        return insert_before(self.copy, constant(number, i32)).result

    def places(self, *coordinates: int) -> tuple[SSAValue, ...]:
        """Constants for coordinates."""
        return tuple(insert_before(self.copy, constant(each, IndexType())).result for each in coordinates)

    def before(self, op: Operation) -> None:
        """Insert before the copy, after what was inserted there."""
        insert_before(self.copy, op)

    def after(self, op: Operation) -> None:
        """Insert after the copy and what was inserted there."""
        op.location = self.copy.location
        Rewriter.insert_op(op, InsertPoint.after(self.last))
        self.last = op


def _send(pipe: CreatePipeOp, copy: CopyOp, ready: SSAValue, valid: SSAValue) -> None:
    _drop_waits(copy)
    around = _Around(copy)
    destinations = pipe.destinations
    everyone, zero, one = around.number(len(destinations)), around.number(0), around.number(1)
    around.before(SemaphoreWaitEqOp(ready, everyone))
    around.before(SemaphoreSetOp(ready, zero))
    around.after(WaitOp(copy.handle))
    if pipe.has_loopback:
        for place in destinations:
            around.after(SemaphoreIncOp(valid, one, around.places(*place)))
        return
    around.after(SemaphoreSetOp(valid, one))
    first, last = pipe.dst_range
    corners = first if first == last else (*first, *last)
    around.after(SemaphoreSetOp(valid, one, around.places(*corners)))


def _receive(pipe: CreatePipeOp, copy: CopyOp, ready: SSAValue, valid: SSAValue) -> None:
    _drop_waits(copy)
    around = _Around(copy)
    zero, one, source = around.number(0), around.number(1), around.places(*pipe.src)
    around.before(SemaphoreSetOp(valid, zero))
    copy.synchronized = UnitAttr()
    around.after(SemaphoreIncOp(ready, one, source))
    around.after(SemaphoreWaitEqOp(valid, one))


def _drop_waits(copy: CopyOp) -> None:
    """Remove the waits for a copy: it is waited for at once."""
    for use in list(copy.handle.uses):
        if not isinstance(use.operation, WaitOp):
            raise error_at(use.operation, "a copy through a pipe can be waited for only, with ttl.wait")
        Rewriter.erase_op(use.operation)
