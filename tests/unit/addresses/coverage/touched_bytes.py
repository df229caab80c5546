"""The bytes that a run in the interpreter really touches, by operation and program, against the coverage."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.addresses.coverage.coverage import Coverage
from tlx_xdsl.addresses.coverage.launch import Launch, argument_names
from tlx_xdsl.addresses.coverage.runs import Runs
from tlx_xdsl.dialects import tt
from tlx_xdsl.interpreter import launch as interpreter
from tlx_xdsl.interpreter.code import Plan
from tlx_xdsl.interpreter.descriptor import Descriptor
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.machine import Launch as Machine

Grid = tuple[int, int, int]


class Watched(GlobalMemory):
    """Global memory that keeps the addresses of the bytes that loads and stores touch."""

    def __init__(self) -> None:
        super().__init__()
        self.program = 0
        self.seen: dict[tuple[Operation, int], list[np.ndarray]] = defaultdict(list)

    def note(self, op: Operation, addresses: Any, size: int, mask: Any = None) -> None:
        """Keep what an operation touches: elements of `size` bytes."""
        chosen = np.broadcast_to(True if mask is None else mask, np.shape(addresses))
        first = np.asarray(addresses)[chosen].ravel()
        self.seen[op, self.program].append((first[:, None] + np.arange(size)).ravel())

    def load(self, op: Operation, addresses: Any, dtype: np.dtype, mask: Any, other: Any) -> Any:
        """Read, and keep where."""
        self.note(op, addresses, dtype.itemsize, mask)
        return super().load(op, addresses, dtype, mask, other)

    def store(self, op: Operation, addresses: Any, values: Any, dtype: np.dtype, mask: Any) -> None:
        """Write, and keep where."""
        self.note(op, addresses, dtype.itemsize, mask)
        super().store(op, addresses, values, dtype, mask)


def watch_descriptors(monkeypatch: Any) -> None:
    """Make descriptors report to a `Watched` memory what they touch."""
    window = Descriptor._window

    def watched(self: Descriptor, op: Operation, memory: Any, corner: Any, verb: str) -> Any:
        axes = []
        reach = (*self.shape[:-1], self.shape[-1] + self.surplus)
        for at, size, part, stride in zip(corner, reach, self.block, self.strides, strict=True):
            inside = np.arange(max(int(at), 0), min(int(at) + part, size))
            axes.append(inside * stride * self.dtype.itemsize)
        addresses = np.array(self.address)
        for axis in axes:
            addresses = addresses[..., None] + axis
        if isinstance(memory, Watched):
            memory.note(op, addresses, self.dtype.itemsize)
        return window(self, op, memory, corner, verb)

    monkeypatch.setattr(Descriptor, "_window", watched)


def run(plan: Plan, memory: Watched, bound: list[Any], grid: Grid) -> None:
    """Run the programs one after the other."""
    machine = Machine(plan, memory, grid, (1, 1, 1), bound)
    for number, program in enumerate(interpreter.clusters(machine)):
        memory.program = number
        list(interpreter.run_clusters(machine, [program], interpreter.Settings()))


def coverage_of(function: tt.FuncOp, bound: list[Any], grid: Grid, sizes: dict[int, tuple[int, ...]]) -> Coverage:
    """The coverage of a launch with the interpreter's values; `sizes` are the shapes of arrays by their address."""
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    numbers: dict[str, int] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for name, value in zip(argument_names(function).values(), bound, strict=True):
        if isinstance(value, Descriptor):
            shapes[name] = value.shape
        elif isinstance(value, np.integer | np.bool_):
            numbers[name] = int(value)
            if int(value) in sizes:
                shapes[name] = sizes[int(value)]
    return Coverage(module, function, Launch(grid, numbers, shapes))


def compare(coverage: Coverage, bound: list[Any], memory: Watched) -> int:
    """Check what the coverage says of each operation against the run; how many operations it knows all about."""
    addresses = {
        name: value.address if isinstance(value, Descriptor) else value
        for name, value in zip(coverage.names.values(), bound, strict=True)
    }
    unseen = {each.op for each in coverage.unseen}
    said: dict[Operation, list[tuple[int, Runs, Runs]]] = defaultdict(list)
    for each in coverage.touched:
        said[each.op].append((int(addresses[each.array]), each.runs, each.maybe))
    known = 0
    for op in {*said, *(op for op, _ in memory.seen)}:
        certain = True
        for program in range(coverage.launch.programs):
            real = np.unique(np.concatenate(memory.seen.get((op, program), [np.zeros(0, np.int64)])))
            sure = _bytes([(start, runs) for start, runs, _ in said[op]], program)
            more = _bytes([(start, maybe) for start, _, maybe in said[op]], program)
            assert np.isin(sure, real).all(), f"{op}: program {program} does not touch what it is said to"
            if op not in unseen:
                assert np.isin(real, np.union1d(sure, more)).all(), f"{op}: program {program} touches more"
            certain = certain and op not in unseen and not len(more)
        known += certain
    return known


def _bytes(places: list[tuple[int, Runs]], program: int) -> np.ndarray:
    found = [np.zeros(0, np.int64)]
    for address, runs in places:
        mine = runs.where(runs.program == program)
        found += [np.arange(start, end) + address for start, end in zip(mine.start, mine.end, strict=True)]
    return np.unique(np.concatenate(found))


def pairs(memory: Watched, *kinds: type[Operation]) -> set[tuple[int, int]]:
    """The pairs of programs of which both write a byte by operations of these kinds, each with the lower one first."""
    owners: dict[int, set[int]] = defaultdict(set)
    for (op, program), found in memory.seen.items():
        if isinstance(op, kinds):
            for byte in np.unique(np.concatenate(found)):
                owners[int(byte)].add(program)
    return {(a, b) for programs in owners.values() for a in programs for b in programs if a < b}
