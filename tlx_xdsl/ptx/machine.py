"""A launch of a kernel: memory, parameters, special registers, and the waves that run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Bytes, Integers

from .clocks import Clocks
from .cohort import LANES, Cohort
from .dependent_launches import DependentLaunch, waits_for_grids
from .global_order import GlobalOrder, talks
from .memory.global_memory import GlobalMemory
from .memory.tensor_memory import TensorMemory
from .ops.memory import Nothing
from .program import Program
from .read.faults import PtxFault
from .read.symbols import VARIABLES
from .traffic import Traffic
from .wave import Budget, Wave

MOST_THREADS = 4096
"""Threads of a wave, as far as that is whole clusters: more gain little, and arrays no longer fit into caches."""

OnFault: TypeAlias = Callable[[PtxFault], bool]
"""Gets a report of accesses that nothing orders or of a register that is used too early; returns whether to go on."""


@dataclass(frozen=True)
class Limits:
    """Limits of a launch: basic blocks, and seconds of processor time."""

    blocks: int = 50_000_000
    """Basic blocks that cohorts run."""
    seconds: float = 600.0


class Machine:
    """A launch."""

    def __init__(
        self,
        program: Program,
        memory: GlobalMemory,
        parameters: Bytes,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        cluster: tuple[int, int, int],
        shared_bytes: int,
        *,
        allows_uninitialized: bool = False,
        compares: bool = True,
        global_order: bool | None = None,
        profiles: bool = False,
        most_threads: int = MOST_THREADS,
        on_fault: OnFault | None = None,
        rank: int | None = None,
        order: GlobalOrder | None = None,
    ):
        self.rank = rank
        self.first_cta = 0 if rank is None else rank * prod(grid)
        self.slice_turns = 64 if rank is None else 2
        self.program = program
        self.memory = memory
        self.parameters = Parameters(parameters)
        self.grid, self.block, self.cluster = grid, block, cluster
        self.threads = prod(block)
        self.cluster_size = prod(cluster)
        self.shared_bytes = shared_bytes
        self.allows_uninitialized = allows_uninitialized
        self.compares = compares
        self.on_fault = on_fault
        self.global_order = order or GlobalOrder(
            self.cluster_size, DependentLaunch(program) if waits_for_grids(program) else None,
            compares=talks(program) if global_order is None else global_order,
            of_gpu=None if rank is None else prod(grid),
        )  # fmt: skip
        self.counts = [0] * len(program.blocks)
        """How often warps have run each block."""
        self.traffic: Any = Traffic() if profiles else Nothing()
        """What counts the costs of accesses."""
        self.clock = 0
        self.others_run = True
        """True if what all threads of a wave wait for may still come from another wave."""
        self._most_threads = most_threads
        self._waiting: list[int] = [*range(self.clusters)]
        """The clusters that are not launched yet, in order."""
        self._local: dict[int, GlobalMemory] = {}
        if not rank:  # what a module holds is constant where several GPUs run it (`launch.run_ranks`)
            self._place_variables()

    # Memory ----------------------------------------------------------------------------------------------------------

    def _place_variables(self) -> None:
        symbols, module = self.program.symbols, self.program.module
        variables = {each.name: each for each in (*module.variables.values(), *self.program.function.variables)}
        homes = [(name, home) for name, home in symbols.homes.items() if home.space == "global" and name in variables]
        for name, home in homes:
            data = np.zeros(home.size, np.uint8)
            if (initial := variables[name].data) is not None:
                data[: len(initial)] = np.frombuffer(initial, np.uint8)
            for offset, symbol in variables[name].addresses:
                target = symbols.homes.get(symbol.name)
                address = 0 if target is None else target.address + symbol.offset
                data[offset : offset + 8] = np.frombuffer(np.uint64(address).tobytes(), np.uint8)
            self.memory.add_at(name, data, home.address)
        assert all(home.address >= VARIABLES for _, home in homes)

    def local_memory(self, wave: Wave) -> GlobalMemory:
        """The local memory of the threads of a wave."""
        if (found := self._local.get(id(wave))) is None:
            found = self._local[id(wave)] = GlobalMemory()
            size = wave.ctas * wave.padded_threads * self._local_stride
            found.add_at("local memory", np.zeros(size, np.uint8), 0)
        return found

    @property
    def _local_stride(self) -> int:
        return -(-self.program.symbols.local_bytes // 16) * 16

    def local_start(self, threads: Integers) -> NDArray[np.uint64]:
        """Return where the local memory of threads begins."""
        return (threads * self._local_stride).astype(np.uint64)

    # Places ----------------------------------------------------------------------------------------------------------

    @property
    def clusters(self) -> int:
        """Clusters of the grid."""
        return prod(self.grid) // self.cluster_size

    def coordinates(self, first: int, count: int) -> Integers:
        """The place in the grid of each CTA of `count` clusters, as [CTAs, 3]; CTAs of a cluster follow each other."""
        along = [size // part for size, part in zip(self.grid, self.cluster, strict=True)]
        numbers = np.arange(first, first + count)
        outer = np.stack([numbers % along[0], numbers // along[0] % along[1], numbers // (along[0] * along[1])], 1)
        ranks = np.arange(self.cluster_size)
        x, y, _ = self.cluster
        inner = np.stack([ranks % x, ranks // x % y, ranks // (x * y)], 1)
        return (outer[:, None] * np.array(self.cluster) + inner[None]).reshape(-1, 3)

    def special(self, cohort: Cohort, name: str) -> Array:
        """A special register of the threads of a cohort (PTX ISA, "Special Registers")."""
        bare, _, axis = name.lstrip("%").partition(".")
        dtype = np.uint64 if bare in ("clock64", "globaltimer", "gridid") else np.uint32
        if axis:
            return self._along(cohort, bare, "xyz".find(axis)).astype(dtype)
        if bare.startswith("lanemask"):
            return _lane_mask(cohort, bare.rpartition("_")[2]).astype(dtype)
        each: dict[str, Any] = {
            "cluster_ctarank": cohort.ctas % self.cluster_size, "laneid": cohort.lane, "warpid": cohort.tids // LANES,
            "smid": cohort.ctas, "cluster_nctarank": self.cluster_size, "nwarpid": -(-self.threads // LANES),
            "nsmid": cohort.wave.ctas, "WARP_SZ": LANES, "dynamic_smem_size": self.shared_bytes,
            "total_smem_size": self.shared_bytes, "is_explicit_cluster": int(self.cluster_size > 1),
        }  # fmt: skip
        # A clock counts turns.
        return np.broadcast_to(np.asarray(each.get(bare, self.clock)), cohort.n).astype(dtype)

    def _along(self, cohort: Cohort, name: str, at: int) -> Integers:
        """A special register that has a value along each axis."""
        block, cluster, grid = self.block, self.cluster[at], self.grid[at]
        if name == "tid":
            x, y, _ = block
            return (cohort.tids % x, cohort.tids // x % y, cohort.tids // (x * y))[at]
        places = cohort.wave.rows(cohort)[:, at]
        each: dict[str, Any] = {
            "ctaid": places, "clusterid": places // cluster, "cluster_ctaid": places % cluster, "ntid": block[at],
            "nctaid": grid, "nclusterid": grid // cluster, "cluster_nctaid": cluster,
        }  # fmt: skip
        return np.broadcast_to(np.asarray(each[name], np.int64), cohort.n)

    # The run ---------------------------------------------------------------------------------------------------------

    def make_order(self, wave: Wave) -> Any:
        """Return what compares the accesses of a wave."""
        return Clocks(wave) if self.compares else Nothing()

    def ended(self, wave: Wave, cta: int, cohort: Cohort) -> None:
        """Look at what a CTA leaves, all of whose threads have ended."""
        wave.order.ended(cta)
        if (tensor := wave.state.get(TensorMemory)) is not None:
            tensor.ended(cta)

    def take_over(self) -> Integers | None:
        """The first CTA of the next cluster that was not launched, which never will be then; None if there is none."""
        if not self._waiting:
            return None
        return self.coordinates(self._waiting.pop(0), 1)[0]

    def run(self, limits: Limits) -> None:
        """Run all CTAs; clusters side by side as far as they fit into a wave. Raises as `run_together` does."""
        run_together([self], limits)

    @property
    def is_waiting(self) -> bool:
        """Return whether there are clusters that are not launched yet."""
        return bool(self._waiting)

    def next_wave(self) -> Wave:
        """Launch the next clusters, as many as fit into a wave."""
        count = max(1, self._most_threads // (self.threads * self.cluster_size))
        if any(each.name == "clusterlaunchcontrol" for each in self.program.function.instructions):
            # Some must be left to be taken over.
            count = 1
        first, count = self._waiting[0], min(count, len(self._waiting))
        del self._waiting[:count]
        return Wave(self, first, count)


def run_together(machines: Sequence[Machine], limits: Limits) -> None:
    """Run launches on several GPUs side by side, which share memory and the order of accesses to it.

    A wave that does not end for long lets others run, which it may wait for.
    Raises PtxFault for what the kernel does wrong.
    """
    budget = Budget(limits.blocks, limits.seconds)
    running: list[Iterator[bool]] = []
    while running or any(each.is_waiting for each in machines):
        running += [each.next_wave().run(budget) for each in machines if each.is_waiting]
        still: list[Iterator[bool]] = []
        stuck = True
        for each in running:
            said = next(each, None)
            if said is not None:
                still.append(each)
            stuck = stuck and said is True
        # Where none goes on, the next that is asked reports it.
        others_run = not stuck or any(each.is_waiting for each in machines)
        for machine in machines:
            machine.others_run = others_run
        running = still
    first = machines[0]
    if first.global_order.dependent is not None:
        conflict = first.global_order.dependent.conflict()
        if conflict is not None and (first.on_fault is None or not first.on_fault(conflict)):
            raise conflict


class Parameters:
    """The parameters of a kernel, as memory."""

    def __init__(self, data: Bytes):
        self.data = data
        self._memory = GlobalMemory()
        self._memory.add_at("the parameters", data, 0)

    def load(self, addresses: NDArray[np.uint64], item: int, lanes: int) -> Array:
        """Rows of elements of the parameters."""
        return self._memory.load(addresses, item, lanes)


def _lane_mask(cohort: Cohort, name: str) -> NDArray[np.uint64]:
    """The lanes that are equal to a thread's, less, greater, or one of two of these, as bits."""
    one = np.uint64(1) << cohort.lane.astype(np.uint64)
    below, every = one - np.uint64(1), np.uint64(0xFFFFFFFF)
    return {"eq": one, "lt": below, "le": below | one, "gt": every & ~(below | one), "ge": every & ~below}[name]
