"""Special registers, promises, what only the pipeliner makes, printing and assertions.

A task runs all its threads as one, so there is no value for what differs between threads: reading it is a fault. The
exception is `gpu.thread_id`, with which kernels pick one thread for what is done once: it is that of the first thread.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from xdsl.dialects import cf
from xdsl.dialects.gpu import DimensionAttr, DimensionEnum
from xdsl.ir import Operation

from tlx_xdsl.dialects import gpu, llvm, nvvm, tlx, tt, ttg, ttng
from tlx_xdsl.dialects.base.tensors import as_tensor, scalar_type
from tlx_xdsl.dialects.tt.types import PointerType
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.plan import Planner
from tlx_xdsl.interpreter.registry import Coroutine, Kind, Run, Unary, effect, immediate, one_or_all, pure, structured
from tlx_xdsl.numerics.arrays import Array, is_float, poison, unsigned

# Where a program stands ----------------------------------------------------------------------------------------------


def _axis(op: Operation) -> int:
    """The axis of an operation of `gpu`."""
    dimension = op.properties["dimension"]
    assert isinstance(dimension, DimensionAttr)
    return list(DimensionEnum).index(dimension.data)


def block_threads(task: Task) -> int:
    """Threads of a thread block, as it is launched: partitions are warps of their own."""
    module = task.cluster.plan.module
    specialised = [op for op in module.walk() if isinstance(op, ttg.WarpSpecializeOp)]
    return 32 * (task.cluster.plan.warps + max((sum(op.num_warps) for op in specialised), default=0))


def _place(task: Task, what: str, axis: int) -> int:
    """Return what a special register of PTX holds along an axis (PTX ISA, "Special Registers")."""
    launch = task.cluster.launch
    rank, (x, y, _) = task.block.rank, launch.cluster
    match what:
        case "ctaid":
            return task.block.program[axis]
        case "nctaid":
            return launch.grid[axis]
        case "ntid":
            return block_threads(task) if axis == 0 else 1
        case "clusterid":
            return task.block.program[axis] // launch.cluster[axis]
        case "nclusterid":
            return launch.grid[axis] // launch.cluster[axis]
        case "cluster.ctaid":
            return (rank % x, rank // x % y, rank // (x * y))[axis]
        case _:
            return launch.cluster[axis]


@effect(*(op for op in gpu.DimensionOp.__subclasses__() if op is not gpu.ThreadIdOp))
def gpu_place(op: gpu.DimensionOp) -> Unary:
    """Indices and sizes of blocks and clusters."""
    what, axis = op.REGISTER, _axis(op)
    return lambda task: np.int64(_place(task, what, axis))


@structured(gpu.ThreadIdOp)
def thread_id(op: gpu.ThreadIdOp, planner: Planner) -> tuple[Kind, Run]:
    """That of the first thread of the task: partitions are numbered after the warps of the default task."""
    warps, axis, inside = 0, _axis(op), op.parent_region()
    while inside is not None and not isinstance(inside.parent, ttg.WarpSpecializePartitionsOp):
        inside = None if inside.parent is None else inside.parent.parent_region()
    if inside is not None:
        holder = inside.parent
        specialised = None if holder is None else holder.parent_op()
        assert isinstance(specialised, ttg.WarpSpecializeOp)
        number = specialised.partitions.partition_regions.index(inside)
        warps = planner.plan.warps + sum(list(specialised.num_warps)[:number])
    first = np.int64(0 if axis else 32 * warps)

    def run(_task: Task) -> np.int64:
        return first

    return Kind.EFFECT, run


def register_value(name: str) -> Callable[[Task], int] | None:
    """Return the reader of a special register, such as `ctaid.x`; None if it differs between threads or is unknown."""
    base, _, axis = name.rpartition(".")
    match name:
        case "clock" | "clock64" | "globaltimer":
            return lambda task: task.cluster.time
        case "smid":
            return lambda task: _flat(task) % _MULTIPROCESSORS
        case "nsmid":
            return lambda _task: _MULTIPROCESSORS
        case "cluster.ctarank" | "cluster_ctarank":
            return lambda task: task.block.rank
        case "cluster.nctarank" | "cluster_nctarank":
            return lambda task: len(task.cluster.blocks)
        case _ if axis in ("x", "y", "z") and base in _PLACES:
            number = "xyz".index(axis)
            return lambda task: _place(task, base.replace("_", "."), number)
        case _:
            return None


def read_register(task: Task, name: str) -> int | None:
    """The value of a special register; None as `register_value` gives it."""
    read = register_value(name)
    return None if read is None else read(task)


_PLACES = (
    "ctaid", "nctaid", "ntid", "clusterid", "nclusterid", "cluster.ctaid", "cluster.nctaid", "cluster_ctaid",
    "cluster_nctaid",
)  # fmt: skip


def _special_register(name: str, class_: type[Operation]) -> None:
    """Register what reads a special register."""

    @effect(class_)
    def build(op: Operation) -> Unary:
        dtype, read = dtype_of(op.results[0].type), register_value(name)
        if read is None:
            raise fault_at(op, f"the interpreter runs the threads of a task as one: they differ in '%{name}'")
        return lambda task: dtype.type(read(task))

    del build


_MULTIPROCESSORS = 132
"""Of an H200, among which programs are dealt out here."""


def _flat(task: Task) -> int:
    (i, j, k), (x, y, _) = task.block.program, task.cluster.launch.grid
    return i + x * (j + y * k)


for _name, _class in nvvm.SPECIAL_REGISTERS.items():
    _special_register(_name, _class)


@effect(tlx.Clock64Op)
def clock64(_op: tlx.Clock64Op) -> Unary:
    """Turns of the cluster so far."""
    return lambda task: np.int64(task.cluster.time)


@pure(ttg.WarpIdOp, nvvm.ElectSyncOp)
def differs(op: Operation) -> Run:
    """There is no one value."""
    raise fault_at(op, f"the interpreter runs the threads of a task as one: '{op.name}' differs between them")


# Order within a task ------------------------------------------------------------------------------------------------


@effect(
    gpu.BarrierOp, ttg.BarrierOp, ttg.LocalBarrierOp, ttng.TMEMWaitOp, nvvm.SetMaxRegisterOp, nvvm.GriddepcontrolOp,
    tt.GridDependencyWaitOp, tt.GridDependencyLaunchDependentsOp, tlx.DumpLayoutOp, tlx.AssertSameLayoutOp,
    tlx.AssertSameLayoutExpectedOp, tlx.AsyncTMAPrefetchOp, tlx.PrefetchOp, tlx.PrefetchTensormapOp,
)  # fmt: skip
def nothing(_op: Operation) -> Run:
    """The threads of a task are in order, and so are its accesses to tensor memory, which are complete at once.

    Registers have no limit, launches follow each other, and hints and notes to the compiler change nothing.
    """
    return lambda *_: None


# Promises and predicates ---------------------------------------------------------------------------------------------


@pure(llvm.AssumeOp)
def assume(op: llvm.AssumeOp) -> Unary:
    """A promise that does not hold makes everything after it undefined."""

    def run(condition: Array) -> None:
        if not np.all(condition):
            raise fault_at(op, "the kernel assumes what does not hold")

    return run


@pure(ttg.PredicateStageOp)
def predicate_stage(op: ttg.PredicateStageOp) -> Run:
    """True if the iteration that has reached this stage is one of the loop: stages run ahead of the last one."""
    ahead = op.max_stage.value.data - op.stage.value.data

    def run(index: Any, upper: Any, step: Any) -> np.bool_:
        return np.bool_(int(index) < int(upper) - ahead * int(step))

    return run


@structured(ttg.MaskOp)
def mask(op: ttg.MaskOp, planner: Planner) -> tuple[Kind, Run]:
    """Results are undefined where the condition does not hold: all bits set, so that it is seen where it matters."""
    body = planner.body(op.region.block)
    anything: list[Any] = []
    for value in op.result:
        try:
            tensor = as_tensor(value.type)
            anything.append(poison(() if tensor is None else tensor.get_shape(), dtype_of(value.type))[()])
        except TypeError:
            # Tokens and buffers have no value that could be mistaken.
            anything.append(None)

    def call(task: Task, condition: Any) -> Any:
        results = body.call(task) if condition else anything
        return one_or_all(results)

    def run(task: Task, condition: Any) -> Coroutine:
        results: Any = (yield from body.run(task)) if condition else anything
        return one_or_all(results)

    return (Kind.STEP, run) if body.suspends else (Kind.EFFECT, call)


@immediate(tt.GetProgramIdOp, tt.GetNumProgramsOp)
def program_place(task: Task, op: tt.GetProgramIdOp | tt.GetNumProgramsOp) -> np.int32:
    """The index of the program, or the number of programs, along an axis."""
    return np.int32(_place(task, "ctaid" if isinstance(op, tt.GetProgramIdOp) else "nctaid", op.axis.value.data))


@effect(tlx.ClusterCTARankOp)
def cluster_cta_rank(_op: tlx.ClusterCTARankOp) -> Unary:
    """The rank of the thread block in its cluster."""
    return lambda task: np.int32(task.block.rank)


@effect(tlx.ClusterSizeOp)
def cluster_size(_op: tlx.ClusterSizeOp) -> Unary:
    """The thread blocks of the cluster."""
    return lambda task: np.int32(len(task.cluster.blocks))


# Printing and assertions ---------------------------------------------------------------------------------------------


@immediate(tt.AssertOp)
def assertion(task: Task, op: tt.AssertOp, condition: Array) -> None:
    """Raises Fault with the text of the user where the condition does not hold."""
    message = op.message.data
    if not condition.all():
        program = ", ".join(map(str, task.block.program))
        where = ""
        if condition.ndim:
            where = f", first at element {np.argwhere(~condition)[0].tolist()} of {list(condition.shape)}"
        raise fault_at(op, f"assertion failed: {message}" if message else "assertion failed",
                       (f"in program ({program}){where}",))  # fmt: skip


@immediate(cf.AssertOp)
def scalar_assertion(task: Task, op: cf.AssertOp, condition: Any) -> None:
    """Raises Fault with the text of the operation where the condition does not hold."""
    if not condition:
        program = ", ".join(map(str, task.block.program))
        raise fault_at(op, f"assertion failed: {op.msg.data}", (f"in program ({program})",))


@immediate(tt.PrintOp)
def print_values(task: Task, op: tt.PrintOp, *values: Array) -> None:
    """One line for each element, with the program and the index in front, as Triton prints on the device."""
    prefix, is_hex = op.prefix.data, bool(op.hex.value.data)
    formats = [_formatter(value.type, is_hex, bool(sign)) for value, sign in
               zip(op.args, op.is_signed.get_values(), strict=True)]  # fmt: skip
    program = "pid ({}, {}, {})".format(*task.block.program)
    if not values:
        print(f"{program}{prefix}")
    for number, (value, text) in enumerate(zip(values, formats, strict=True)):
        which = f"(operand {number}) " if len(values) > 1 else ""
        widths = [len(str(size - 1)) for size in value.shape]
        for index in product(*map(range, value.shape)):
            place = ", ".join(f"{at:{width}}" for at, width in zip(index, widths, strict=True))
            print(f"{program} idx ({place}){prefix}{which}{text(value[index])}")


def _formatter(type_: Any, is_hex: bool, is_signed: bool) -> Unary:
    """The text of a number: integers in decimal or all their digits in base 16, floats with six decimals."""
    dtype = dtype_of(type_)
    if isinstance(scalar_type(type_), PointerType):
        return lambda value: f"0x{int(value):x}"
    if is_hex:
        bits = np.dtype(f"u{dtype.itemsize}")
        return lambda value: f"0x{int(value.view(bits)):0{2 * dtype.itemsize}x}"
    if is_float(dtype):
        return lambda value: f"{float(value):f}"
    if is_signed:
        return lambda value: str(int(value))
    return lambda value: str(int(value.view(unsigned(dtype))))
