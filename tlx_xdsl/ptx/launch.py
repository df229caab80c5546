"""Run a kernel from its PTX: arguments to parameters, and the launch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import Any, TypeVar, cast

import ml_dtypes
import numpy as np

from tlx_xdsl.errors import InputError, InputTypeError
from tlx_xdsl.grid import sizes_of
from tlx_xdsl.numerics.arrays import Bytes
from tlx_xdsl.numerics.blas import one_thread
from tlx_xdsl.numerics.host_arrays import addresses_of, reach
from tlx_xdsl.targets import target_named

from .machine import Limits, Machine, OnFault, run_together
from .memory.global_memory import GlobalMemory
from .memory.tensor_map import TENSOR_MAP_BYTES, TensorMap, encode
from .program import Program, prepare
from .read.faults import location_of
from .read.reader import read
from .read.syntax import Instruction, Parameter
from .traffic import LineTraffic

MachineT = TypeVar("MachineT", bound=Machine)

MOST_SHARED = 227 * 1024
"""Bytes of shared memory where no target says it."""


@dataclass(frozen=True)
class PtxRun:
    """Result of a run of PTX."""

    instructions: int
    """Instructions that warps have run."""
    seconds: float
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Instructions that warps have run, by operation code."""
    lines: Mapping[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """Instructions that warps have run, by file and line of the Python source."""
    traffic: Mapping[tuple[str, int], LineTraffic] = field(default_factory=dict[tuple[str, int], LineTraffic])
    """With `profile`, what lines have taken of memory, TMA and the tensor cores, by file and line of the Python source,
    or of the PTX where that names none."""
    early_reads: tuple[str, ...] = ()
    """The arrays that are read before `griddepcontrol.wait`: right only where no earlier launch, which may still run,
    writes them."""


def run_ptx(
    text: str,
    grid: int | Sequence[int],
    args: Sequence[Any],
    *,
    kernel: str | None = None,
    num_warps: int | None = None,
    cluster: Sequence[int] | None = None,
    shared: int | None = None,
    scratch: int = 0,
    filename: str = "<ptx>",
    uninitialized: str = "error",
    races: bool = True,
    global_order: bool | None = None,
    profile: bool = False,
    fp_fusion: bool = True,
    max_seconds: float = 600.0,
    max_blocks: int = 50_000_000,
) -> PtxRun:
    """Run a kernel of PTX on numpy arrays, which are written in place.

    `args` are the values of the kernel's parameters in order: numpy arrays (or what numpy takes without a copy) for
    pointers, numbers, and `TensorMap`s for parameters of 128 bytes, which stand for the shape and the strides after
    them, too, where the kernel has them. The two scratch pointers that Triton adds need no values.

    `grid` counts CTAs along x, y and z. `num_warps` and `cluster` are needed where the PTX does not say them
    (`.reqntid`, `.reqnctapercluster`). `shared` is the dynamic shared memory in bytes (all that the target has), and
    `scratch` the bytes of global scratch memory of each CTA. With `uninitialized="allow"`, shared memory that nothing
    has written may be read. `races=False` compares no accesses. Those to global
    memory are compared where the kernel has atomic operations, `.acquire`, `.release`, `.relaxed` or `.volatile`
    accesses or fences, or with `global_order=True`. With `profile`, the result says what lines take
    of memory, TMA and the tensor cores. `fp_fusion=False` is for PTX that is assembled with `--fmad=false`.

    Raises PtxError for PTX that is not known, at its line; PtxFault for what the kernel does wrong while it runs, at
    its line of Python or of PTX; PtxDeadlock, PtxRace and PtxBudget, which are PtxFaults; TypeError and ValueError for
    arguments that do not fit.
    """
    program = prepare(read(text, filename), kernel, fp_fusion=fp_fusion)
    return run_program(
        program, grid, args, num_warps=num_warps, cluster=cluster, shared=shared, scratch=scratch,
        uninitialized=uninitialized, races=races, global_order=global_order, profile=profile,
        limits=Limits(max_blocks, max_seconds),
    )  # fmt: skip


def run_program(
    program: Program,
    grid: int | Sequence[int],
    args: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    reachable: Sequence[Any] = (),
    num_warps: int | None = None,
    cluster: Sequence[int] | None = None,
    shared: int | None = None,
    scratch: int = 0,
    uninitialized: str = "error",
    races: bool = True,
    global_order: bool | None = None,
    profile: bool = False,
    limits: Limits | None = None,
    on_fault: OnFault | None = None,
) -> PtxRun:
    """Run a kernel that was read before, as `run_ptx` does; `names` are those of the arguments in reports.

    `reachable` are arrays that the kernel reaches by pointers that it loads, at the addresses that they have in this
    process. `on_fault` gets each report of an access that nothing orders, or of a register that is used too early, and
    says whether the run goes on; without it such a fault is raised.
    """
    if uninitialized not in ("error", "allow"):
        raise InputError(f"uninitialized: expected error or allow, found '{uninitialized}'")
    make = partial(
        Machine, allows_uninitialized=uninitialized == "allow", compares=races, global_order=global_order,
        profiles=profile, on_fault=on_fault,
    )  # fmt: skip
    machine = machine_for(
        program, grid, args, make, GlobalMemory(), names=names, reachable=reachable, num_warps=num_warps,
        cluster=cluster, shared=shared, scratch=scratch,
    )  # fmt: skip
    before = time.perf_counter()
    with one_thread():
        machine.run(limits or Limits())
    seconds = time.perf_counter() - before
    done = report(program, machine.counts, seconds, machine.traffic.by_instruction if profile else {})
    dependent = machine.global_order.dependent
    return done if dependent is None else replace(done, early_reads=dependent.early_reads)


def run_ranks(
    program: Program,
    grid: int | Sequence[int],
    args: Sequence[Sequence[Any]],
    symmetric: Sequence[Any],
    connect: Callable[[Sequence[int]], None],
    *,
    names: Sequence[str],
    symmetric_names: Sequence[str],
    num_warps: int | None = None,
    cluster: Sequence[int] | None = None,
    shared: int | None = None,
    scratch: int = 0,
    uninitialized: str = "error",
    limits: Limits | None = None,
    on_fault: OnFault | None = None,
) -> PtxRun:
    """Run a kernel on several GPUs side by side, in one memory, as `run_program` does; `args` has those of each.

    `connect` gets the addresses of the arrays `symmetric`, before any GPU starts. Accesses to global memory are
    compared: between GPUs only those of scope `.sys` order each other.
    """
    for variable in program.module.variables.values():
        if variable.space == "global" and variable.data is None:
            raise InputError(f"'{variable.name}' is a variable of the module, of which each GPU has its own")
    memory, make = (
        GlobalMemory(),
        partial(Machine, allows_uninitialized=uninitialized == "allow", global_order=True, on_fault=on_fault),
    )
    own = [(f"{_name(value, name)} of rank {rank}", value) for rank, each in enumerate(args)
           for name, value in zip(names, each, strict=True)]  # fmt: skip
    every = [*own, *zip(symmetric_names, symmetric, strict=True)]
    found = addresses_of([value for _, value in every], [name for name, _ in every], memory)
    connect([address or 0 for address in found[len(own) :]])
    machines: list[Machine] = []
    for rank, each in enumerate(args):
        make_one = partial(make, rank=rank, order=machines[0].global_order if machines else None)
        machines.append(machine_for(
            program, grid, each, make_one, memory, names=names, num_warps=num_warps, cluster=cluster, shared=shared,
            scratch=scratch, addresses=found[rank * len(names) :][: len(names)],
        ))  # fmt: skip
    before = time.perf_counter()
    with one_thread():
        run_together(machines, limits or Limits())
    counts = [sum(each) for each in zip(*(machine.counts for machine in machines), strict=True)]
    return report(program, counts, time.perf_counter() - before)


def machine_for(
    program: Program,
    grid: int | Sequence[int],
    args: Sequence[Any],
    make: Callable[..., MachineT],
    memory: GlobalMemory,
    *,
    names: Sequence[str] | None = None,
    reachable: Sequence[Any] = (),
    num_warps: int | None = None,
    cluster: Sequence[int] | None = None,
    shared: int | None = None,
    scratch: int = 0,
    addresses: Sequence[int | None] | None = None,
) -> MachineT:
    """Make the machine of a launch, whose arguments are those of `run_program`, and put its arrays into `memory`.

    They are there already where `addresses` has one for each array.

    Raises TypeError and ValueError for arguments that do not fit.
    """
    sizes = sizes_of(grid)
    block = _block(program, num_warps)
    clusters = _cluster(program, cluster)
    if any(size % part for size, part in zip(sizes, clusters, strict=True)):
        raise InputError(f"the grid {sizes} is no multiple of the cluster {clusters}")
    scratch_address = memory.add("scratch memory", np.zeros(scratch * prod(sizes), np.uint8)) if scratch else 0
    reach(reachable, memory)
    parameters = bind(program, args, memory, scratch_address, names, addresses)
    return make(program, memory, parameters, sizes, block, clusters, _shared(program, shared))


def report(
    program: Program, counts: Sequence[int], seconds: float, traffic: Mapping[int, LineTraffic] | None = None
) -> PtxRun:
    """Say what was run, from how often each block was, and from what each instruction has taken."""
    opcodes: dict[str, int] = {}
    lines: dict[tuple[str, int], int] = {}
    total = 0
    for block, count in zip(program.blocks, counts, strict=True):
        if not count:
            continue
        for instruction in program.function.instructions[block.first : block.last]:
            opcodes[instruction.opcode] = opcodes.get(instruction.opcode, 0) + count
            if (place := instruction.place) is not None and place.file in program.module.files:
                key = program.module.files[place.file], place.line
                lines[key] = lines.get(key, 0) + count
        total += count * (block.last - block.first)
    taken: dict[tuple[str, int], LineTraffic] = {}
    for at, each in (traffic or {}).items():
        taken.setdefault(_line_of(program, program.function.instructions[at]), LineTraffic()).add(each)
    return PtxRun(total, seconds, opcodes, lines, taken)


def _line_of(program: Program, instruction: Instruction) -> tuple[str, int]:
    where = location_of(program.module, instruction.place)
    return (program.module.filename, instruction.line) if where is None else (where.filename, where.line)


# What surrounds a launch ---------------------------------------------------------------------------------------------


def _block(program: Program, num_warps: int | None) -> tuple[int, int, int]:
    said = program.function.directives.get("reqntid")
    if said is not None:
        x, y, z = (*said, 1, 1)[:3]
    elif num_warps is not None:
        x, y, z = 32 * num_warps, 1, 1
    elif (most := program.function.directives.get("maxntid")) is not None:
        x, y, z = (*most, 1, 1)[:3]
    else:
        raise InputError("the PTX does not say how many threads a CTA has: give num_warps")
    if not 1 <= x * y * z <= 1024:
        raise InputError(f"a CTA has 1 to 1024 threads, found {x * y * z}")
    return x, y, z


def _cluster(program: Program, cluster: Sequence[int] | None) -> tuple[int, int, int]:
    said = program.function.directives.get("reqnctapercluster")
    given = cluster if cluster is not None else said if said is not None else (1,)
    if not 1 <= len(given) <= 3 or min(given) < 1 or prod(given) > 16:
        raise InputError(f"a cluster has 1 to 16 CTAs along one to three axes, found {list(given)}")
    x, y, z = (*map(int, given), 1, 1)[:3]
    return x, y, z


def _shared(program: Program, dynamic: int | None) -> int:
    if dynamic is None:
        try:
            most = target_named(program.module.target).shared_bytes
        except ValueError:
            most = MOST_SHARED
        return max(most, program.symbols.shared_bytes)
    return program.symbols.shared_bytes + dynamic


# Arguments -----------------------------------------------------------------------------------------------------------


def bind(
    program: Program,
    args: Sequence[Any],
    memory: GlobalMemory,
    scratch: int,
    given: Sequence[str] | None = None,
    addresses: Sequence[int | None] | None = None,
) -> Bytes:
    """The bytes of the parameters.

    Raises TypeError for a value that does not fit its parameter, or a wrong number of them.
    """
    parameters = program.function.parameters
    names = list(given or (f"argument {number}" for number in range(1, len(args) + 1)))
    for value, name in zip(args, names, strict=True):
        if np.asanyarray(value).dtype.kind in "OSU" and value is not None and not isinstance(value, TensorMap):
            raise InputTypeError(f"{name} must be an array or a number, found {type(value).__name__}")
    if addresses is None:
        addresses = addresses_of(args, [_name(value, name) for value, name in zip(args, names, strict=True)], memory)
    data = np.zeros(program.symbols.parameter_bytes, np.uint8)
    at = 0
    for value, name, address in zip(args, names, addresses, strict=True):
        if at >= len(parameters):
            raise InputTypeError(f"'{program.function.name}' takes fewer arguments than {len(args)}")
        if isinstance(value, TensorMap):
            assert address is not None
            _put(program, data, parameters[at], encode(value, address), name)
            at = _extents(program, data, at + 1, value, len(parameters) - at - 1)
            continue
        _put(program, data, parameters[at], _bytes_of(value, parameters[at], address, name), name)
        at += 1
    missing = len(parameters) - at
    if missing > 2 or any(parameter.size != 8 for parameter in parameters[at:]):
        raise InputTypeError(f"'{program.function.name}' takes {len(parameters)} parameters, found values for {at}")
    if missing == 2 and scratch:
        _put(program, data, parameters[at], np.uint64(scratch).tobytes(), "scratch")
    return data


def _name(value: Any, name: str) -> str:
    return value.name or name if isinstance(value, TensorMap) else getattr(value, "name", None) or name


def _put(program: Program, data: Bytes, parameter: Parameter, raw: bytes, name: str) -> None:
    if len(raw) != parameter.size:
        raise InputTypeError(f"{name} has {len(raw)} bytes, the parameter '{parameter.name}' has {parameter.size}")
    start = program.symbols.homes[parameter.name].address
    data[start : start + len(raw)] = np.frombuffer(raw, np.uint8)


def _extents(program: Program, data: Bytes, at: int, value: TensorMap, left: int) -> int:
    """The shape and the strides after a tensor map, where the kernel has them."""
    rank, parameters = len(value.shape), program.function.parameters
    sizes = [parameter.size for parameter in parameters[at : at + 2 * rank]]
    if left < 2 * rank or sizes != [4] * rank + [8] * rank:
        return at
    for place, extent in enumerate(value.shape):
        _put(program, data, parameters[at + place], np.int32(extent).tobytes(), "a shape")
    for place, stride in enumerate(value.strides):
        _put(program, data, parameters[at + rank + place], np.int64(stride).tobytes(), "a stride")
    return at + 2 * rank


def _bytes_of(value: Any, parameter: Parameter, address: int | None, name: str) -> bytes:
    if address is not None:
        return np.uint64(address).tobytes()
    if parameter.size == TENSOR_MAP_BYTES:
        raise InputTypeError(f"{name} must be a TensorMap, found {type(value).__name__}")
    if value is None:
        return bytes(parameter.size)
    if isinstance(value, np.generic):
        scalar = np.asarray(cast(Any, value))
        if scalar.itemsize == parameter.size:
            return scalar.tobytes()
        value = scalar.item()
    if isinstance(value, float):
        if parameter.type == "bf16":
            return np.array(value, ml_dtypes.bfloat16).tobytes()
        if parameter.size not in (2, 4, 8):
            raise InputTypeError(f"{name} must be an integer, found {value}")
        return np.array(value, f"f{parameter.size}").tobytes()
    if not isinstance(value, int):
        raise InputTypeError(f"{name} must be an array or a number, found {type(value).__name__}")
    bits = 8 * parameter.size
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise InputTypeError(f"{name} has {bits} bits, which cannot hold {value}")
    return (value % (1 << bits)).to_bytes(parameter.size, "little")
