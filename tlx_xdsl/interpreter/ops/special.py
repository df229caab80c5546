"""Special registers, promises, and what only the pipeliner makes.

A task runs all its threads as one, so there is no value for what differs between threads: reading it is a fault. The
exception is `gpu.thread_id`, with which kernels pick one thread for what is done once: it is that of the first thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.gpu import DimensionAttr, DimensionEnum
from xdsl.ir import Operation

from tlx_xdsl.dialects import gpu, llvm, nvvm, tlx, tt, ttg
from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.plan import Planner
from tlx_xdsl.interpreter.registry import Coroutine, Kind, Run, Unary, effect, one_or_all, pure, structured
from tlx_xdsl.numerics.arrays import Array, poison

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
    """What reads a special register, such as `ctaid.x`; None for what differs between threads, or is unknown here."""
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


@effect(gpu.BarrierOp, nvvm.SetMaxRegisterOp, nvvm.GriddepcontrolOp)
def nothing(_op: Operation) -> Run:
    """The threads of a task are in order, registers have no limit, and launches follow each other."""
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
    """Whether the iteration that has reached this stage is one of the loop: stages run ahead of the last one."""
    ahead = op.max_stage.value.data - op.stage.value.data

    def run(index: Any, upper: Any, step: Any) -> np.bool_:
        return np.bool_(int(index) < int(upper) - ahead * int(step))

    return run


@structured(ttg.MaskOp)
def mask(op: ttg.MaskOp, planner: Planner) -> tuple[Kind, Run]:
    """Where the condition does not hold, results are anything: all bits set, so that it is seen where it matters."""
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


@effect(tt.GetProgramIdOp)
def program_id(op: tt.GetProgramIdOp) -> Unary:
    """The index of the program along an axis."""
    axis = op.axis.value.data
    return lambda task: np.int32(task.block.program[axis])


@effect(tt.GetNumProgramsOp)
def num_programs(op: tt.GetNumProgramsOp) -> Run:
    """The number of programs along an axis."""
    axis = op.axis.value.data

    def run(task: Task) -> np.int32:
        return np.int32(task.cluster.launch.grid[axis])

    return run


@effect(tlx.ClusterCTARankOp)
def cluster_cta_rank(_op: tlx.ClusterCTARankOp) -> Unary:
    """The rank of the thread block in its cluster."""
    return lambda task: np.int32(task.block.rank)


@effect(tlx.ClusterSizeOp)
def cluster_size(_op: tlx.ClusterSizeOp) -> Unary:
    """The thread blocks of the cluster."""
    return lambda task: np.int32(len(task.cluster.blocks))
