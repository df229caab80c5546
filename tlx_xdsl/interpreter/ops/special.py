"""Single instructions: special registers, barriers and fences as PTX, promises, and what only the pipeliner makes.

A task runs all its threads as one, so there is no value for what differs between threads: reading it is a fault. The
exception is `gpu.thread_id`, with which kernels pick one thread for what is done once: it is that of the first thread.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Operation

from tlx_xdsl.dialects import gpu, llvm, nvvm, tlx, ttg
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.numbers import dtype_of, poison
from tlx_xdsl.dialects.base.tensors import as_tensor
from tlx_xdsl.interpreter.ops.barriers import named_arrive, named_sync
from tlx_xdsl.interpreter.plan import Planner
from tlx_xdsl.interpreter.registry import Binary, Kind, Run, Unary, effect, pure, step, structured
from tlx_xdsl.interpreter.task import Coroutine, Task

# Where a program stands ----------------------------------------------------------------------------------------------


def _axis(op: Operation) -> int:
    """The axis of an operation of `gpu`."""
    return list(DimensionEnum).index(op.properties["dimension"].data)  # pyright: ignore[reportAttributeAccessIssue]


def block_threads(task: Task) -> int:
    """Threads of a thread block, as it is launched: partitions are warps of their own."""
    module = task.block.cluster.plan.module
    specialised = [op for op in module.walk() if isinstance(op, ttg.WarpSpecializeOp)]
    return 32 * (task.block.cluster.plan.warps + max((sum(op.num_warps) for op in specialised), default=0))


def _place(task: Task, what: str, axis: int) -> int:
    """What a special register of PTX holds along an axis (PTX ISA, "Special Registers")."""
    launch = task.block.cluster.launch
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


_GPU: dict[type[Operation], str] = {
    gpu.BlockIdOp: "ctaid",
    gpu.GridDimOp: "nctaid",
    gpu.BlockDimOp: "ntid",
    gpu.ClusterIdOp: "clusterid",
    gpu.ClusterDimOp: "nclusterid",
    gpu.ClusterBlockIdOp: "cluster.ctaid",
    gpu.ClusterDimBlocksOp: "cluster.nctaid",
}


@effect(*_GPU)
def gpu_place(op: Operation) -> Unary:
    """Indices and sizes of blocks and clusters."""
    what, axis = _GPU[type(op)], _axis(op)
    return lambda task: np.int64(_place(task, what, axis))


@structured(gpu.ThreadIdOp)
def thread_id(op: gpu.ThreadIdOp, planner: Planner) -> tuple[Kind, Run]:
    """That of the first thread of the task: partitions are numbered behind the warps of the default task."""
    warps, axis, inside = 0, _axis(op), op.parent_region()
    while inside is not None and not isinstance(holder := inside.parent, ttg.WarpSpecializePartitionsOp):
        inside = None if holder is None else holder.parent_region()
    if inside is not None:
        specialised = inside.parent_op() and inside.parent_op().parent_op()  # pyright: ignore[reportOptionalMemberAccess]
        assert isinstance(specialised, ttg.WarpSpecializeOp)
        number = specialised.partitions.partition_regions.index(inside)
        warps = planner.plan.warps + sum(list(specialised.num_warps)[:number])
    first = np.int64(0 if axis else 32 * warps)
    return Kind.EFFECT, lambda _task: first


def _special_register(name: str, class_: type[Operation]) -> None:
    """Register what reads a special register."""
    base, _, axis = name.rpartition(".")

    @effect(class_)
    def build(op: Operation) -> Unary:
        dtype = dtype_of(op.results[0].type)
        if name in ("clock64", "globaltimer"):
            return lambda task: dtype.type(task.block.cluster.time)
        if name == "smid":
            return lambda task: dtype.type(_flat(task) % _MULTIPROCESSORS)
        if name == "cluster.ctarank":
            return lambda task: dtype.type(task.block.rank)
        if name == "cluster.nctarank":
            return lambda task: dtype.type(len(task.block.cluster.blocks))
        if axis in ("x", "y", "z") and base != "tid":
            number = "xyz".index(axis)
            return lambda task: dtype.type(_place(task, base, number))
        raise fault_at(op, f"the interpreter runs the threads of a task as one: they differ in '%{name}'")

    del build


_MULTIPROCESSORS = 132
"""Of an H200, among which programs are dealt out here."""


def _flat(task: Task) -> int:
    (i, j, k), (x, y, _) = task.block.program, task.block.cluster.launch.grid
    return i + x * (j + y * k)


for _name, _class in nvvm.SPECIAL_REGISTERS.items():
    _special_register(_name, _class)


@effect(tlx.Clock64Op)
def clock64(_op: tlx.Clock64Op) -> Unary:
    """Turns of the cluster so far."""
    return lambda task: np.int64(task.block.cluster.time)


@pure(ttg.WarpIdOp, nvvm.ElectSyncOp)
def differs(op: Operation) -> Run:
    """There is no one value."""
    raise fault_at(op, f"the interpreter runs the threads of a task as one: '{op.name}' differs between them")


# Barriers and fences -------------------------------------------------------------------------------------------------

_BAR = re.compile(r"(?:barrier\.cta|bar|barrier)(?:\.cta)?\.(sync|arrive)(?:\.aligned)?\s+(\$?\d+)(?:\s*,\s*(\$?\d+))?\s*;?")


def _ptx(op: Operation, text: str, arguments: int) -> Run:
    """What runs PTX that is one instruction for a named barrier (PTX ISA, "bar").

    Raises Fault for all other PTX.
    """
    if (found := _BAR.fullmatch(text.strip())) is None:
        raise fault_at(op, f"the interpreter can't run the PTX '{text.strip()}'")
    verb, number, threads = found.groups()

    def value(text: str | None, values: tuple[Any, ...], default: int) -> int:
        if text is None:
            return default
        return int(values[int(text[1:])]) if text.startswith("$") else int(text)

    for text_ in (number, threads):
        if text_ is not None and text_.startswith("$") and int(text_[1:]) >= arguments:
            raise fault_at(op, f"the PTX names the operand {text_}, there are {arguments}")

    def run(task: Task, *values: Any) -> Coroutine:
        yield None
        barrier, count = value(number, values, 0), value(threads, values, block_threads(task))
        if verb == "sync":
            yield from named_sync(task, op, barrier, count)
        else:
            named_arrive(task, op, barrier, count)

    return run


@step(nvvm.InlinePtxOp)
def inline_ptx(op: nvvm.InlinePtxOp) -> Run:
    """Named barriers, for which Triton has no operation; other PTX is a fault."""
    if op.predicate is not None or op.write_only_args or op.read_write_args:
        raise fault_at(op, f"the interpreter can't run the PTX '{op.ptx_code.data}' with results or a predicate")
    return _ptx(op, op.ptx_code.data, len(op.read_only_args))


@step(ttg.InlineAsmOp)
def inline_asm(op: ttg.InlineAsmOp) -> Run:
    """Named barriers; what computes with the elements that a thread holds is a fault."""
    if op.result or any(isinstance(value.type, MemDescType) for value in op.args):
        raise fault_at(op, f"the interpreter can't run the PTX '{op.asm_string.data}' on the elements of one thread")
    return _ptx(op, op.asm_string.data, len(op.args))


@step(nvvm.BarrierOp)
def barrier(op: nvvm.BarrierOp) -> Run:
    """Without a number it is that of all threads of a task, which are in order anyway."""
    has_id, has_threads = op.barrier_id is not None, op.number_of_threads is not None

    def run(task: Task, *values: np.int32) -> Coroutine:
        yield None
        if has_id:
            threads = int(values[-1]) if has_threads else block_threads(task)
            yield from named_sync(task, op, int(values[0]), threads)

    return run


@effect(nvvm.BarrierArriveOp)
def barrier_arrive(op: nvvm.BarrierArriveOp) -> Run:
    """PTX: bar.arrive."""
    has_id = op.barrier_id is not None

    def run(task: Task, *values: np.int32) -> None:
        named_arrive(task, op, int(values[0]) if has_id else 0, int(values[-1]))

    return run


@effect(nvvm.FenceProxyOp)
def fence_proxy(op: nvvm.FenceProxyOp) -> Unary:
    """One of the async proxy and shared memory makes what the task knows visible there; others change nothing here."""
    if op.kind.data not in (nvvm.ProxyKind.ASYNC, nvvm.ProxyKind.ASYNC_SHARED):
        return lambda _task: None
    return lambda task: task.clock.fence()


@effect(gpu.BarrierOp, nvvm.FenceMbarrierInitOp, nvvm.SetMaxRegisterOp, nvvm.GriddepcontrolOp)
def nothing(_op: Operation) -> Run:
    """The threads of a task are in order, registers have no limit, and launches follow each other."""
    return lambda *_: None


# Promises and predicates ---------------------------------------------------------------------------------------------


@pure(llvm.AssumeOp)
def assume(op: llvm.AssumeOp) -> Unary:
    """A promise that does not hold makes everything behind it undefined."""

    def run(condition: np.bool_) -> None:
        if not condition:
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
    single = len(op.result) == 1
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
        return results[0] if single else results

    def run(task: Task, condition: Any) -> Coroutine:
        results: Any = (yield from body.run(task)) if condition else anything
        return results[0] if single else results

    return (Kind.STEP, run) if body.suspends else (Kind.EFFECT, call)
