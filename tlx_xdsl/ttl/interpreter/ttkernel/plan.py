"""Plans of runs, from modules in their final form: code for each thread, and the resources of the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.errors import InputError
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.text.diagnostics import Diagnostic
from tlx_xdsl.ttl.dialects.ttcore import TileType, format_of, register_bytes
from tlx_xdsl.ttl.dialects.ttkernel.base import THREAD, CBType, ThreadAttr, ThreadKind, noc_of
from tlx_xdsl.ttl.dialects.ttl.kernel import KernelDriverOp, LaunchThreadOp
from tlx_xdsl.ttl.dialects.ttl.types import CBType as BlockCBType, encoding_of
from tlx_xdsl.ttl.tiles import PageLayout, from_pages, to_pages

from . import accessors, circular_buffers, compute, core_writes, noc, printing, rows, semaphores
from .compute import Registers
from .endings import check_end, check_thread_end, read_warnings, write_warnings
from .exploration import Exploration, explore as explore_runs
from .machine import ALIGNMENT, CircularBuffer, CoreThread, Machine, Tensor, make_core, wrong
from .suppliers import suppliers
from .threads import Schedule, Trace, make_schedule, run_threads
from .translate import Coroutine, Dialects, Local, integer, translate

REGISTERS = 16
"""Destination registers of a core for elements of 16 bits, when all are used at once."""


@dataclass(frozen=True)
class Launched:
    """A function that each core runs as a thread."""

    op: FuncOp
    code: Callable[..., Coroutine]
    is_compute: bool
    tensors: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """A kernel, ready to run."""

    driver: KernelDriverOp
    threads: tuple[Launched, ...]
    buffers: tuple[Operation, ...]
    """Operations that declare circular buffers."""
    semaphores: tuple[int, ...]
    """Their initial values."""

    def machine(
        self,
        arrays: Sequence[Array],
        *,
        capacity: int | None = None,
        checks: bool = True,
        order: np.random.Generator | None = None,
    ) -> Machine:
        """A machine before its first turn.

        Raises InputError for arrays that do not fit, and Fault for circular buffers that can't be where they are.
        """
        tensors = tensors_of(self.driver.args, arrays)
        return self.machine_with(tensors, capacity=capacity, checks=checks, order=order)

    def machine_with(
        self,
        tensors: list[Tensor],
        *,
        capacity: int | None = None,
        checks: bool = True,
        order: np.random.Generator | None = None,
    ) -> Machine:
        """A machine whose tensors are these."""
        grid, chip = self.driver.grid, self.driver.architecture
        cores = {
            (x, y): make_core(x, y, self._made_buffers(), list(self.semaphores), chip.l1_bytes)
            for y in range(grid.y)
            for x in range(grid.x)
        }
        columns = chip.network_columns(grid.x)
        machine = Machine(
            (grid.x, grid.y), cores, tensors, checks, columns=columns, order=order, orders_signals=chip.orders_signals
        )
        count = self.capacity() if capacity is None else capacity
        for core in cores.values():
            for launched in self.threads:
                thread = CoreThread(
                    len(machine.threads), launched.op.sym_name.data, core.x, core.y, machine=machine, core=core,
                    tensors=launched.tensors, noc=noc_of(launched.op),
                    registers=Registers(count) if launched.is_compute else None,
                    end=launched.op.body.block.last_op,
                )  # fmt: skip
                thread.coroutine = launched.code(thread)
                machine.threads.append(thread)
        machine.at_end = check_thread_end
        machine.who_supplies = lambda thread: suppliers(self._functions(), machine.threads, thread)
        return machine

    def end(self, machine: Machine) -> None:
        """Check what is left when all threads have ended; raises Fault."""
        if machine.checks:
            check_end(machine)

    def capacity(self) -> int:
        """The destination registers of a core."""
        sizes = [register_bytes(_buffer_type(op).data_type) for op in self.buffers]
        wide = self.driver.fp32_dest_acc_en or any(size == 4 for size in sizes)
        return REGISTERS // (1 if self.driver.dst_full_sync_en else 2) // (2 if wide else 1)

    def _made_buffers(self) -> list[CircularBuffer]:
        made: list[CircularBuffer] = []
        free = 0
        for op in self.buffers:
            type_ = _buffer_type(op)
            base = integer(op, "l1_address", free)
            made.append(
                CircularBuffer(op, integer(op, "cb_index"), base, type_.num_pages, type_.page_bytes, type_.element_type)
            )
            free = max(free, -(-made[-1].end // ALIGNMENT) * ALIGNMENT)
        return made

    def _functions(self) -> list[FuncOp]:
        return [each.op for each in self.threads]


def make_plan(module: ModuleOp, kernel: str | None = None, dialects: Dialects | None = None) -> Plan:
    """Plan the kernel of a module; `kernel` names its driver where there are several.

    `dialects` are what runs the operations, where it is not `DIALECTS`.

    Raises Fault for operations that the machine does not know, and InputError when there is no such kernel.
    """
    drivers = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelDriverOp)}
    if kernel is None and len(drivers) == 1:
        (driver,) = drivers.values()
    elif kernel in drivers:
        driver = drivers[kernel]
    else:
        raise InputError(
            f"expected the driver of a kernel, such as 'ttl-expand-threads' makes, found {', '.join(drivers) or 'none'}"
        )
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    inside = list(driver.body.block.ops)
    launches = [op for op in inside if isinstance(op, LaunchThreadOp)]
    return Plan(
        driver,
        tuple(_launched(op, driver, functions, DIALECTS if dialects is None else dialects) for op in launches),
        tuple(op for op in inside if op.name == "ttl.bind_cb"),
        tuple(_initial_values([op for op in inside if op.name == "ttl.create_semaphore"])),
    )


def _initial_values(ops: Sequence[Operation]) -> list[int]:
    values = {integer(op, "index", number): integer(op, "initial", 0) for number, op in enumerate(ops)}
    return [values.get(index, 0) for index in range(max(values, default=-1) + 1)]


def _launched(op: LaunchThreadOp, driver: KernelDriverOp, functions: dict[str, FuncOp], dialects: Dialects) -> Launched:
    name = op.callee.root_reference.data
    if (function := functions.get(name)) is None:
        raise fault_at(op, f"no function '{name}', there are {', '.join(functions) or 'none'}")
    if function.body.block.args:
        raise fault_at(
            function, f"'{name}' still has arguments: the machine runs what 'ttl-lower-synchronization' gives"
        )
    kind = function.attributes.get(THREAD)
    if not isinstance(kind, ThreadAttr):
        raise fault_at(function, f"'{name}' has no '{THREAD}': expected a #ttkernel.thread")
    tensors = [_argument(value, driver) for value in op.arguments]
    code = translate(function.body.blocks, dialects, name)
    return Launched(
        function, code, kind.data is ThreadKind.COMPUTE, tuple(number for number in tensors if number is not None)
    )


def _argument(value: SSAValue, driver: KernelDriverOp) -> int | None:
    """The number of the tensor that a thread gets as this value."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "ttl.tensor_accessor":
        value = owner.operands[0]
    arguments = list(driver.args)
    return arguments.index(value) if value in arguments else None


def _buffer_type(op: Operation) -> BlockCBType:
    type_ = op.results[0].type
    assert isinstance(type_, BlockCBType)
    return type_


def _circular_buffer(op: Operation) -> Local:
    """The circular buffer of a number, which must be what the driver has made."""
    index = integer(op, "index")
    type_ = cast(CBType, op.results[0].type)

    def run(thread: CoreThread) -> CircularBuffer:
        buffer = thread.core.buffers.get(index)
        if buffer is None:
            raise wrong(op, thread, f"takes circular buffer {index}, which the kernel does not have")
        if (buffer.pages, buffer.element) != (type_.num_pages, type_.element_type):
            found = CBType.get(buffer.pages, buffer.element)
            raise wrong(op, thread, f"takes {buffer.label} for {type_}, but the driver has made {found}")
        return buffer

    return run


_BUILDERS: dict[str, Any] = {
    "ttkernel.get_compile_time_arg_val": _circular_buffer,
    **circular_buffers.BUILDERS,
    **accessors.BUILDERS,
    **noc.BUILDERS,
    **core_writes.BUILDERS,
    **semaphores.BUILDERS,
    **compute.BUILDERS,
    **rows.BUILDERS,
    **printing.BUILDERS,
}
DIALECTS = Dialects(_BUILDERS, {}, frozenset(("func.return",)))


# Arrays as the tensors of a kernel, and back.


def layout_of(type_: Attribute) -> PageLayout:
    """Return how the pages of a tensor are cut."""
    layout = encoding_of(type_).layout
    kind = layout.kind.value
    if kind != "sharded":
        return PageLayout(kind)
    rows, columns = layout.grid
    tile_rows, tile_columns = layout.tiles_per_shard
    return PageLayout(kind, (rows, columns), (tile_rows, tile_columns))


def tensor_of(index: int, argument: SSAValue, array: Array) -> Tensor:
    """An array as a tensor in DRAM, which has a copy of it.

    Raises InputError for an array of another shape.
    """
    type_: Any = argument.type
    assert isinstance(type_, TensorType | MemRefType)
    name = argument.name_hint or str(index)
    shape: tuple[int, ...] = tuple(type_.get_shape())
    if array.shape != shape:
        raise InputError(f"argument {index}, '{name}': expected an array of shape {shape}, found {array.shape}")
    element = cast(Attribute, type_.get_element_type())
    dtype = format_of(element.data_type if isinstance(element, TileType) else element)
    layout = layout_of(argument.type)
    return Tensor(index, name, shape, dtype, layout, to_pages(array, dtype, layout))


def tensors_of(arguments: Sequence[SSAValue], arrays: Sequence[Array]) -> list[Tensor]:
    """All arrays of a launch.

    Raises InputError when there are too few or too many.
    """
    if len(arrays) != len(arguments):
        names = ", ".join(each.name_hint or str(index) for index, each in enumerate(arguments))
        raise InputError(f"the kernel takes {len(arguments)} arrays ({names}), found {len(arrays)}")
    return [tensor_of(index, each, array) for index, (each, array) in enumerate(zip(arguments, arrays, strict=True))]


def write_back(tensor: Tensor, array: Array) -> None:
    """Let an array have what its tensor has."""
    values: Any = from_pages(tensor.pages, tensor.shape, tensor.dtype, tensor.layout)
    if tensor.dtype == "bf16" and array.dtype == np.uint16:
        array[...] = (values.view(np.uint32) >> 16).astype(np.uint16)
    else:
        array[...] = values


# Runs of a kernel in its final form: `run` once, `explore` in every order that makes a difference.


@dataclass(frozen=True)
class Report:
    """Statistics and warnings of a run."""

    turns: int
    """Turns of threads, and updates of semaphores."""
    choices: tuple[int, ...]
    """Who went on at each of them: a schedule that `run` can follow again."""
    noc_bytes: int
    """Bytes that the network on chip has moved."""
    registers: int
    """Destination registers used on a core, at most."""
    warnings: tuple[Diagnostic, ...] = ()
    """What is strange, but may be meant."""


def run(
    module: ModuleOp | Plan,
    arrays: Sequence[Array],
    *,
    schedule: str | Sequence[int] = "round-robin",
    seed: int = 0,
    capacity: int | None = None,
    checks: bool = True,
) -> Report:
    """Run a kernel; arrays whose tensors it writes have the results afterwards.

    `schedule` is the name of a policy, or the choices of an earlier run; `capacity` is the number of destination
    registers, where it is not that of the hardware. Without `checks`, only what the hardware can't do is a fault.

    Raises Fault, Deadlock when no thread can go on, and InputError for arrays that do not fit.
    """
    plan = module if isinstance(module, Plan) else make_plan(module)
    order = order_of_transfers(schedule, seed)
    machine = plan.machine(arrays, capacity=capacity, checks=checks, order=order)
    return run_machine(machine, lambda: plan.end(machine), arrays, make_schedule(schedule, seed))


def order_of_transfers(schedule: str | Sequence[int], seed: int) -> np.random.Generator | None:
    """Return what shuffles transfers that land together; nothing in the prompt schedule, and where one is repeated."""
    return None if schedule == "round-robin" or not isinstance(schedule, str) else np.random.default_rng(seed)


def run_machine(machine: Machine, end: Callable[[], None], arrays: Sequence[Array], schedule: Schedule) -> Report:
    """Run the threads of a machine, check its `end`, and write what they have written back to the arrays."""
    trace = Trace()
    run_threads(machine, schedule, trace)
    end()
    for tensor, array in zip(machine.tensors, arrays, strict=True):
        if tensor.written:
            write_back(tensor, array)
    return report_of(machine, trace)


def report_of(machine: Machine, trace: Trace) -> Report:
    """Return what the run of a machine was like."""
    threads = [thread for thread in machine.threads if isinstance(thread, CoreThread)]
    used = max((thread.registers.used for thread in threads if thread.registers is not None), default=0)
    warnings = (*machine.warnings.values(), *read_warnings(machine), *write_warnings(machine))
    return Report(len(trace.choices), tuple(trace.choices), machine.noc_bytes, used, warnings)


def explore(
    module: ModuleOp | Plan, arrays: Sequence[Array], budget: int = 1000, *, capacity: int | None = None
) -> Exploration:
    """Run a kernel in every order that makes a difference, up to the first fault or `budget` runs.

    The arrays stay as they are. A fault comes with the choices that lead to it, which `run` takes as a schedule.
    """
    plan = module if isinstance(module, Plan) else make_plan(module)
    return explore_runs(lambda: plan.machine(arrays, capacity=capacity), plan.end, budget)
