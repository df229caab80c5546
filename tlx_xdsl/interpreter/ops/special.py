"""Special registers, promises, what only the pipeliner makes, printing and assertions.

A task runs all its threads as one, so reading what differs between them is a fault. The exception is `gpu.thread_id`,
with which kernels pick one thread for what is done once: it has a number for each thread (`interpreter/threads.py`).
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
from tlx_xdsl.dialects.base import as_tensor, scalar_type
from tlx_xdsl.numerics.arrays import Array, is_float, poison, unsigned

from ..dependent_launches import DEPENDENTS, EARLIER, is_wait
from ..faults import Unsupported, fault_at
from ..grid import program_text
from ..machine import Task
from ..numbers import dtype_of
from ..planner import Planner
from ..registry import (
    Built,
    Coroutine,
    Kind,
    Run,
    Unary,
    effect,
    immediate,
    one_or_all,
    pure,
    structured,
    threadwise,
)
from ..threads import differs, is_scalar_code
from .thread_registers import held_by

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


@threadwise(gpu.ThreadIdOp)
@effect(gpu.ThreadIdOp)
def thread_id(op: gpu.ThreadIdOp) -> Unary:
    """A number for each thread of the task: partitions are numbered after the warps of the default task.

    Raises Fault in code that computes with single elements of tensors: it is unknown which thread does so.
    """
    if is_scalar_code(op):
        raise fault_at(op, "it is unknown which thread computes with which element of the tensor")
    along_x = _axis(op) == 0

    def run(task: Task) -> Any:
        if not along_x:
            return np.int64(0)
        before = sum(other.warps for other in task.block.crew[: task.number])
        return 32 * before + np.arange(task.threads, dtype=np.int64)

    return run


def register_value(name: str) -> Callable[[Task], int] | None:
    """Return the reader of a special register, such as `ctaid.x`; None if it differs between threads or is unknown."""
    base, _, axis = name.rpartition(".")
    match name:
        case "clock" | "clock64":
            return _clock
        case "globaltimer":
            return lambda task: task.cluster.launch.time.now + task.cluster.time
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


def _clock(task: Task) -> int:
    task.cluster.clock_reads += 1
    return task.cluster.time + task.cluster.clock_reads


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
            raise fault_at(
                op, f"the interpreter runs the threads of a task as one: they differ in '%{name}'", kind=Unsupported
            )
        return lambda task: dtype.type(read(task))

    del build


_MULTIPROCESSORS = 132
"""Of an H200, among which programs are dealt out here."""


def _flat(task: Task) -> int:
    (i, j, k), (x, y, _) = task.block.program[:3], task.cluster.launch.grid
    return i + x * (j + y * k)


for _name, _class in nvvm.SPECIAL_REGISTERS.items():
    _special_register(_name, _class)


@effect(tlx.Clock64Op)
def clock64(_op: tlx.Clock64Op) -> Unary:
    """Turns of the cluster so far, and one more for each time that it was read: it never stands still."""
    return lambda task: np.int64(_clock(task))


@pure(ttg.WarpIdOp, nvvm.ElectSyncOp)
def no_one_value(op: Operation) -> Run:
    """Refuse an operation that has no one value for all threads."""
    raise fault_at(
        op, f"the interpreter runs the threads of a task as one: '{op.name}' differs between them", kind=Unsupported
    )


# Order within a task ------------------------------------------------------------------------------------------------


@effect(
    gpu.BarrierOp, ttg.BarrierOp, ttg.LocalBarrierOp, ttng.TMEMWaitOp, nvvm.SetMaxRegisterOp, tlx.DumpLayoutOp,
    tlx.AssertSameLayoutOp, tlx.AssertSameLayoutExpectedOp, tlx.AsyncTMAPrefetchOp, tlx.PrefetchOp,
    tlx.PrefetchTensormapOp,
)  # fmt: skip
def nothing(_op: Operation) -> Run:
    """The threads of a task are in order, and so are its accesses to tensor memory, which are complete at once.

    Registers have no limit, launches follow each other, and hints and notes to the compiler change nothing.
    """
    return lambda *_: None


@effect(nvvm.GriddepcontrolOp, tt.GridDependencyWaitOp, tt.GridDependencyLaunchDependentsOp)
def dependent_launch(op: Operation) -> Run:
    """Note that earlier launches are over, or that later ones may begin; here they follow each other."""
    agent = EARLIER if is_wait(op) else DEPENDENTS

    def run(task: Task) -> None:
        task.clock.observe(agent, 1)

    return run


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
def mask(op: ttg.MaskOp, planner: Planner) -> Built:
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


@threadwise(tt.AssertOp)
@immediate(tt.AssertOp)
def assertion(task: Task, op: tt.AssertOp, condition: Array) -> None:
    """Raises Fault with the text of the user where the condition does not hold; goes on at a breakpoint."""
    message = op.message.data
    if op.is_breakpoint:
        return
    if task.active is not None:
        condition = _of_active(op, task.active, condition)
    if not condition.all():
        program = program_text(task.block.program)
        where = ""
        if condition.ndim:
            where = f", first at element {np.argwhere(~condition)[0].tolist()} of {list(condition.shape)}"
        raise fault_at(op, f"assertion failed: {message}" if message else "assertion failed",
                       (f"in program {program}{where}",))  # fmt: skip


def _of_active(op: tt.AssertOp, active: Array, condition: Array) -> Array:
    """A condition that holds for all that threads hold which do not run."""
    if as_tensor(op.condition.type) is None:
        return condition if np.ndim(condition) == 0 else condition[active]
    return condition | ~held_by(op, op.condition, active)


@immediate(cf.AssertOp)
def scalar_assertion(task: Task, op: cf.AssertOp, condition: Any) -> None:
    """Raises Fault with the text of the operation where the condition does not hold."""
    if not condition:
        program = program_text(task.block.program)
        raise fault_at(op, f"assertion failed: {op.msg.data}", (f"in program {program}",))


@threadwise(tt.PrintOp)
@immediate(tt.PrintOp)
def print_values(task: Task, op: tt.PrintOp, *values: Array) -> None:
    """One line for each element, with the program and the index in front, as Triton prints on the device.

    Of a number, one line for all threads where they have the same.
    """
    prefix, is_hex, active = op.prefix.data, bool(op.hex.value.data), task.active
    formats = [_formatter(value.type, is_hex, bool(sign)) for value, sign in
               zip(op.args, op.is_signed.get_values(), strict=True)]  # fmt: skip
    program = "pid ({}, {}, {})".format(*task.block.program)
    if not values:
        print(f"{program}{prefix}")
    for number, (argument, value, text) in enumerate(zip(op.args, values, formats, strict=True)):
        which = f"(operand {number}) " if len(values) > 1 else ""
        if as_tensor(argument.type) is None:
            held = value if active is None or not differs(value) else value[active]
            for each in dict.fromkeys(np.atleast_1d(held)):
                print(f"{program} idx (){prefix}{which}{text(each)}")
            continue
        shown = None if active is None else held_by(op, argument, active)
        widths = [len(str(size - 1)) for size in value.shape]
        for index in product(*map(range, value.shape)):
            if shown is None or shown[index]:
                place = ", ".join(f"{at:{width}}" for at, width in zip(index, widths, strict=True))
                print(f"{program} idx ({place}){prefix}{which}{text(value[index])}")


def _formatter(type_: Any, is_hex: bool, is_signed: bool) -> Unary:
    """The text of a number: integers in decimal or all their digits in base 16, floats with six decimals."""
    dtype = dtype_of(type_)
    if isinstance(scalar_type(type_), tt.PointerType):
        return lambda value: f"0x{int(value):x}"
    if is_hex:
        bits = np.dtype(f"u{dtype.itemsize}")
        return lambda value: f"0x{int(value.view(bits)):0{2 * dtype.itemsize}x}"
    if is_float(dtype):
        return lambda value: f"{float(value):f}"
    if is_signed:
        return lambda value: str(int(value))
    return lambda value: str(int(value.view(unsigned(dtype))))
