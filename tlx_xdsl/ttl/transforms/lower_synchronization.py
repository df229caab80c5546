"""`ttl-lower-synchronization`: circular buffers, barriers and semaphores become calls; functions lose their arguments.

Before:
```mlir
func.func @read(%a_cb: !ttl.cb<[1, 1], !tile, 2>, ...) attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %cb = builtin.unrealized_conversion_cast %a_cb : !ttl.cb<[1, 1], !tile, 2> to !ttkernel.cb<2, !tile>
  %view = ttl.cb_reserve %a_cb : !ttl.cb<[1, 1], !tile, 2> -> memref<1x1x!tile>
  %l1 = ttkernel.get_write_ptr(%cb) : (!ttkernel.cb<2, !tile>) -> i32
  ttkernel.noc_async_read_tile(...)
  ttl.dma_barrier read
  ttl.cb_push %a_cb
```
After:
```mlir
func.func @read() attributes {ttkernel.thread = #ttkernel.thread<noc>} {
  %cb = ttkernel.get_compile_time_arg_val() {index = 0 : i32} : () -> !ttkernel.cb<2, !tile>
  ttkernel.cb_reserve_back(%cb, %c1) : (!ttkernel.cb<2, !tile>, i32) -> ()
  %l1 = ttkernel.get_write_ptr(%cb) : (!ttkernel.cb<2, !tile>) -> i32
  ttkernel.noc_async_read_tile(...)
  ttkernel.noc_async_read_barrier() : () -> ()
  ttkernel.cb_push_back(%cb, %c1) : (!ttkernel.cb<2, !tile>, i32) -> ()
```
The protocol counts in pages, `ttl` in blocks. A launch keeps the tensors whose addresses are the thread's arguments
at run time: `ttl.launch_thread @read(%a_acc)`. This is the last lowering of `ttl`: what is left of it is refused
here.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    TensorType,
    UnitAttr,
    UnrealizedConversionCastOp,
)
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, forward, insert_before, ops_of

from ..dialects.ttkernel import buffers, printing
from ..dialects.ttkernel.base import THREAD as TTKERNEL_THREAD, CBType
from ..dialects.ttkernel.noc import NocAsyncReadBarrierOp, NocAsyncWriteBarrierOp
from ..dialects.ttl.base import THREAD, Threads, TTLOp
from ..dialects.ttl.buffers import AcquireOp, BindCBOp, CBOp, DMABarrierOp, WaitOp
from ..dialects.ttl.pipes import SemaphoreOp
from ..dialects.ttl.printing import PrintOp
from ..dialects.ttl.types import CBType as TTLCBType, Direction
from .semaphores import lower_semaphore
from .thread_function import Emitter, ThreadFunction, cb_type, common_arguments, integer, thread_functions
from .views import Views

_STEPS = {
    (True, True): buffers.CBReserveBackOp,
    (True, False): buffers.CBPushBackOp,
    (False, True): buffers.CBWaitFrontOp,
    (False, False): buffers.CBPopFrontOp,
}
"""The calls of the protocol, by whether they are the producer's and whether they acquire pages."""

_BARRIERS = {Direction.READ: NocAsyncReadBarrierOp, Direction.WRITE: NocAsyncWriteBarrierOp}


class LowerSynchronizationPass(Pass):
    """Lower what is left of `ttl` in the threads of the module's drivers."""

    name = "ttl-lower-synchronization"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for an operation of `ttl` that nothing lowers.
        """
        for thread in [*thread_functions(op)]:
            _resolve_casts(thread)
            _lower_barriers(thread)
            for each in ops_of(thread.function, SemaphoreOp):
                lower_semaphore(thread, each)
                Rewriter.erase_op(each)
            for each in ops_of(thread.function, PrintOp):
                _lower_print(thread, each)
            _erase_unused(thread)
            for each in ops_of(thread.function, CBOp):
                _lower_step(thread, each)
            _check_lowered(thread)
            _drop_arguments(thread)


def _lower_step(thread: ThreadFunction, op: CBOp) -> None:
    """Replace a step of the protocol, whose block nothing uses any more."""
    if isinstance(op, AcquireOp):
        for use in op.view.uses:
            raise _not_lowered(use.operation)
    emit = thread.emitter(op)
    class_ = _STEPS[op.PRODUCES, op.ACQUIRES]
    emit.add_op(class_(operands=[_compile_time_argument(thread, op.cb, op), emit.i32(op.num_pages)]))
    Rewriter.erase_op(op)


def _lower_print(thread: ThreadFunction, op: PrintOp) -> None:
    """Replace a text: one for what is before a circular buffer or a block, and one for that."""
    emit = thread.emitter(op)
    values = list(op.values)
    last = values[-1] if values and not _is_integer(values[-1]) else None
    integers, text = (values, op.format.data) if last is None else (values[:-1], op.format.data.rsplit("{}", 1)[0])
    how = {} if op.thread is None else {"thread": op.thread}
    if text or not values:
        emit.add_op(printing.DPrintOp(operands=[integers], properties={"format": StringAttr(text.rstrip()), **how}))
    if last is not None and isinstance(last.type, TTLCBType):
        buffer = _compile_time_argument(thread, last, op)
        emit.add_op(printing.DPrintBufferOp(operands=[buffer], properties=how))
    elif last is not None:
        acquisition = Views(thread).acquisition(last, op)
        if acquisition.view is not last:
            raise error_at(op, "'print' shows the block of a step that acquires one, found one of several")
        written = {"written": UnitAttr()} if acquisition.PRODUCES else {}
        properties = {"tiles": integer(acquisition.cb_type.block_pages), **written, **how}
        buffer = _compile_time_argument(thread, acquisition.cb, op)
        emit.add_op(printing.DPrintTilesOp(operands=[buffer], properties=properties))
    Rewriter.erase_op(op)


def _is_integer(value: SSAValue) -> bool:
    return isinstance(value.type, IndexType | IntegerType)


def _lower_barriers(thread: ThreadFunction) -> None:
    for op in ops_of(thread.function, DMABarrierOp, WaitOp):
        barrier = _BARRIERS[op.direction]
        if not isinstance(_before(op), barrier):
            insert_before(op, barrier())
        Rewriter.erase_op(op)


def _before(op: Operation) -> Operation | None:
    """The last operation before this one in its block that is more than arithmetic."""
    previous = op.prev_op
    while previous is not None and is_side_effect_free(previous):
        previous = previous.prev_op
    return previous


def _erase_unused(thread: ThreadFunction) -> None:
    """Erase the blocks of views, and casts, that only lowered operations have used."""
    for op in reversed([*thread.function.walk()]):
        unused = op.results and not any(result.uses.get_length() for result in op.results)
        if unused and is_side_effect_free(op) and (isinstance(op, TTLOp | UnrealizedConversionCastOp)):
            Rewriter.erase_op(op)


def _resolve_casts(thread: ThreadFunction) -> None:
    """Let the circular buffers that earlier passes have cast to those of `ttkernel` be compile-time arguments."""
    views = Views(thread)
    for op in ops_of(thread.function, UnrealizedConversionCastOp):
        if len(op.inputs) == 1 and len(op.outputs) == 1 and isinstance(op.outputs[0].type, CBType):
            value = op.inputs[0]
            if isinstance(value.type, MemRefType | TensorType):
                value = views.acquisition(value, op).cb
            if isinstance(value.type, TTLCBType):
                forward(op, _compile_time_argument(thread, value, op))


def _compile_time_argument(thread: ThreadFunction, buffer: SSAValue, user: Operation) -> SSAValue:
    bind = thread.origin(buffer).owner
    if not isinstance(bind, BindCBOp):
        raise error_at(user, "expected a circular buffer of the kernel: create it outside of the threads")

    def make(emit: Emitter) -> SSAValue:
        properties = {"index": integer(bind.cb_index.value.data)}
        return emit.result(
            buffers.GetCompileTimeArgValOp(properties=properties, result_types=[cb_type(bind.result.type)])
        )

    return thread.hoisted(("argument", bind), user, make)


def _check_lowered(thread: ThreadFunction) -> None:
    for op in thread.function.walk():
        if isinstance(op, TTLOp | UnrealizedConversionCastOp):
            raise _not_lowered(op)
    for argument in thread.function.body.block.args:
        for use in argument.uses:
            raise _not_lowered(use.operation)


def _not_lowered(op: Operation):
    threads = op.THREADS if isinstance(op, TTLOp) else Threads.ANY
    match threads:
        case Threads.COMPUTE:
            advice = "run ttl-lower-compute before, or write it with operations on blocks that a store ends"
        case Threads.DATAMOVEMENT:
            advice = "run ttl-lower-data-movement before, or move the data with copies of whole blocks"
        case Threads.ANY:
            advice = "run ttl-lower-compute and ttl-lower-data-movement before, or use a copy or a store of the block"
    return error_at(op, f"'{op.name}' can't be lowered to ttkernel: {advice}")


def _drop_arguments(thread: ThreadFunction) -> None:
    """Let the function have no arguments; the launch keeps the tensors whose addresses are runtime arguments."""
    thread.launch.operands = [*common_arguments(thread).values()]
    block = thread.function.body.block
    for argument in [*block.args]:
        block.erase_arg(argument)
    thread.function.function_type = FunctionType.from_lists([], [])
    attributes = thread.function.attributes
    attributes[TTKERNEL_THREAD] = attributes.pop(THREAD)
