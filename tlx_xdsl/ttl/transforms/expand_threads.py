"""`ttl-expand-threads`: the threads of a kernel become functions, and what they share stays in a driver.

Before:
```mlir
ttl.kernel @add(%a: tensor<...>) attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.create_cb shape=[1, 1], ... {cb_index = 0 : i32, l1_address = 0 : i32} : !ttl.cb<...>
  %a_acc = ttl.tensor_accessor %a : tensor<...> -> !ttl.tensor_accessor<...>
  %id = ttl.get_shard_id() : index
  ttl.datamovement_thread @read {
    %view = ttl.cb_reserve %a_cb : !ttl.cb<...> -> memref<...>
    %xf = ttl.copy %a_acc[%id], %view : ...
    ...
    ttl.thread_return
  }
  ttl.kernel_return
}
```
After:
```mlir
ttl.kernel_driver @add_driver(%a: tensor<...>) attributes {grid = #ttcore.grid<1x1>} {
  %a_cb = ttl.bind_cb {cb_index = 0 : i32, buffer_factor = 2 : i32, l1_address = 0 : i32} : !ttl.cb<...>
  %a_acc = ttl.tensor_accessor %a : tensor<...> -> !ttl.tensor_accessor<...>
  %id = ttl.get_shard_id() : index
  ttl.launch_thread @read(%a_cb, %a_acc, %id)
  ttl.kernel_driver_return
}
func.func @read(%a_cb: !ttl.cb<...>, %a_acc: !ttl.tensor_accessor<...>, %id: index)
    attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  ...
  func.return
}
```
Arguments are in the order of their definitions. Constants and arithmetic are no arguments: each thread has its own
copy. Numbers of circular buffers and semaphores are given in the driver only, so that no two threads mean different
buffers by one number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import is_side_effect_free

from tlx_xdsl.text.diagnostics import error_at, location_of, source_location
from tlx_xdsl.transforms.rewriting import Pass, insert_before, ops_of, replace

from ..dialects.ttcore import CIRCULAR_BUFFERS, DATAMOVEMENT_THREADS, SEMAPHORES
from ..dialects.ttkernel.base import ThreadAttr, ThreadKind
from ..dialects.ttl.base import THREAD, TTLOp
from ..dialects.ttl.buffers import BindCBOp, CBOp, CopyOp, CreateCBOp
from ..dialects.ttl.kernel import (
    ComputeThreadOp,
    DatamovementThreadOp,
    KernelDriverOp,
    KernelDriverReturnOp,
    KernelOp,
    KernelReturnOp,
    LaunchThreadOp,
    ThreadReturnOp,
)
from ..dialects.ttl.pipes import CreateSemaphoreOp
from ..dialects.ttl.types import Direction
from .thread_function import integer

_LIMITS = {ThreadKind.COMPUTE: (1, "compute"), ThreadKind.NOC: (DATAMOVEMENT_THREADS, "datamovement")}
"""Threads of each kind that a core has."""


class ExpandThreadsPass(Pass):
    """Replace each kernel by its driver and the functions of its threads."""

    name = "ttl-expand-threads"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for a kernel with more threads or semaphores than a core has.
        """
        taken = {each.sym_name.data for each in ops_of(op, func.FuncOp)}
        for kernel in ops_of(op, KernelOp):
            _check_threads(kernel)
            _Expansion(kernel, taken).run()


def _check_threads(kernel: KernelOp) -> None:
    seen: dict[ThreadKind, list[Operation]] = {}
    for thread in kernel.threads:
        same = seen.setdefault(thread.KIND, [])
        same.append(thread)
        most, word = _LIMITS[thread.KIND]
        if len(same) > most:
            places = [source_location(each.location) for each in same[:-1]]
            raise error_at(
                thread,
                f"a core has {most} {word} thread{'s' if most > 1 else ''}, this is number {len(same)}: "
                "move its work to the other thread" + ("s" if most > 1 else ""),
                [f"the {'other' if most == 1 else 'others'}: {place}" for place in places if place is not None],
            )


class _Expansion:
    """The expansion of one kernel."""

    def __init__(self, kernel: KernelOp, taken: set[str]):
        self._kernel = kernel
        self._taken = taken
        block = kernel.body.block
        values = [*block.args, *(result for op in block.ops for result in op.results)]
        self._order: dict[SSAValue, int] = {value: number for number, value in enumerate(values)}
        """The values that threads may share, in the order of their definitions."""

    def run(self) -> None:
        """Replace the kernel."""
        kernel = self._kernel
        self._number_resources()
        functions = [self._extract(thread) for thread in kernel.threads]
        for op in ops_of(kernel, KernelReturnOp):
            replace(op, KernelDriverReturnOp())
        _erase_unused(kernel.body.block)
        body = kernel.detach_region(kernel.body)
        driver = KernelDriverOp(
            f"{kernel.sym_name.data}_driver", kernel.function_type.inputs.data, body, dict(kernel.attributes)
        )
        insert_before(kernel, driver)
        for function in functions:
            Rewriter.insert_op(function, InsertPoint.before(kernel))
        Rewriter.erase_op(kernel)

    # The driver's resources ------------------------------------------------------------------------------------------

    def _number_resources(self) -> None:
        buffers = ops_of(self._kernel, CreateCBOp)
        given = {each.cb_index.value.data for each in buffers if each.cb_index is not None}
        free = (number for number in range(len(buffers) + len(given)) if number not in given)
        for op in buffers:
            index = next(free) if op.cb_index is None else op.cb_index.value.data
            if index >= CIRCULAR_BUFFERS:
                raise error_at(op, f"a core has circular buffers 0 to {CIRCULAR_BUFFERS - 1}, this is number {index}")
            address = None if op.l1_address is None else op.l1_address.value.data
            bind = BindCBOp(op.type, index, address, internal=op.internal is not None)
            bind.attributes |= op.attributes
            result = replace(op, bind).result
            self._order[result] = self._order.pop(op.result)
        for index, op in enumerate(ops_of(self._kernel, CreateSemaphoreOp)):
            if index >= SEMAPHORES:
                raise error_at(
                    op, f"a core has {SEMAPHORES} semaphores, this is one more: use one for several purposes"
                )
            op.index = integer(index)

    # The threads -----------------------------------------------------------------------------------------------------

    def _extract(self, thread: ComputeThreadOp | DatamovementThreadOp) -> func.FuncOp:
        self._clone_cheap_values(thread)
        block = thread.body.block
        captured = sorted({value for value, _ in self._captured(thread)}, key=self._order.__getitem__)
        launch = insert_before(thread, LaunchThreadOp(self._name_of(thread), captured))
        for value in captured:
            argument = block.insert_arg(value.type, len(block.args), location_of(value))
            argument.name_hint = value.name_hint
            value.replace_uses_with_if(
                argument, lambda use: use.operation is not launch and _is_in(use.operation, block)
            )
        for op in ops_of(thread, ThreadReturnOp):
            replace(op, func.ReturnOp())
        name = launch.callee.root_reference.data
        inputs = FunctionType.from_lists([value.type for value in captured], [])
        function = func.FuncOp(name, inputs, thread.detach_region(thread.body))
        function.location = thread.location
        function.attributes |= thread.attributes
        function.attributes[THREAD] = ThreadAttr(thread.KIND)
        Rewriter.erase_op(thread)
        return function

    def _captured(self, thread: Operation) -> Iterator[tuple[SSAValue, Operation]]:
        """The kernel's values that a thread uses, with the users."""
        for op in thread.walk():
            for operand in op.operands:
                if operand in self._order:
                    yield operand, op

    def _clone_cheap_values(self, thread: ComputeThreadOp | DatamovementThreadOp) -> None:
        """Give the thread its own copies of what needs no argument."""
        copies: dict[SSAValue, SSAValue] = {}
        first = thread.body.block.first_op
        assert first is not None, "a thread has a terminator"

        def own(value: SSAValue) -> SSAValue:
            owner = value.owner
            if value in copies or value not in self._order or not isinstance(owner, Operation):
                return copies.get(value, value)
            if not _is_cheap(owner):
                _check_shared(owner)
                return value
            clone = owner.clone({operand: own(operand) for operand in owner.operands})
            insert_before(first, clone, located_at=owner)
            for old, new in zip(owner.results, clone.results, strict=True):
                new.name_hint = old.name_hint
                copies[old] = new
            return copies[value]

        for value, user in list(self._captured(thread)):
            for index, operand in enumerate(user.operands):
                if operand is value and (mine := own(value)) is not value:
                    user.operands[index] = mine

    def _name_of(self, thread: ComputeThreadOp | DatamovementThreadOp) -> str:
        """A name for the function that no other one has."""
        name = _role(thread) if thread.sym_name is None else thread.sym_name.data
        candidates = [name, f"{self._kernel.sym_name.data}_{name}"]
        candidates += [f"{candidates[-1]}_{number}" for number in range(len(self._taken))]
        name = next(candidate for candidate in candidates if candidate not in self._taken)
        self._taken.add(name)
        return name


def _role(thread: ComputeThreadOp | DatamovementThreadOp) -> str:
    """Return what a thread without a name does: moving data, whether it fills circular buffers or empties them."""
    if isinstance(thread, ComputeThreadOp):
        return "compute"
    copies = Counter(copy.direction for copy in ops_of(thread, CopyOp))
    produces = any(op.PRODUCES for op in thread.walk() if isinstance(op, CBOp))
    reads = copies[Direction.READ] >= copies[Direction.WRITE] if copies else produces
    return "dm_reader" if reads else "dm_writer"


def _is_cheap(op: Operation) -> bool:
    """Return whether threads have their own copies of the operation: it is arithmetic."""
    return not isinstance(op, TTLOp) and is_side_effect_free(op) and not op.regions


def _check_shared(op: Operation) -> None:
    if not isinstance(op, TTLOp):
        raise error_at(
            op, f"'{op.name}' is neither a resource nor index arithmetic: move it into the threads that need it"
        )


def _erase_unused(block: Block) -> None:
    """Erase the arithmetic that threads have copies of."""
    for op in reversed([*block.ops]):
        if _is_cheap(op) and op.results and not any(result.uses.get_length() for result in op.results):
            Rewriter.erase_op(op)


def _is_in(op: Operation, block: Block) -> bool:
    parent: Operation | None = op
    while parent is not None:
        if parent.parent is block:
            return True
        parent = parent.parent_op()
    return False
