"""Surroundings of threads, as cohorts and instructions see them: their wave and their launch; and traps.

The classes are `wave.Wave` and `machine.Machine`; that they are named here only keeps imports in one direction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Integers


class Launch(Protocol):
    """A launch of a kernel."""

    program: Any
    memory: Any
    """Global memory."""
    parameters: Any
    threads: int
    """Threads of a CTA."""
    cluster_size: int
    rank: int | None
    """That of its GPU, where several run the kernel."""
    first_cta: int
    """The number of its first CTA among those of all GPUs."""
    slice_turns: int
    """Turns of a wave before other waves get one."""
    shared_bytes: int
    counts: list[int]
    """How often warps have run each block."""
    traffic: Any
    """What counts the costs of accesses."""
    clock: int
    compares: bool
    allows_uninitialized: bool
    others_run: bool
    on_fault: Callable[[Any], bool] | None
    """Asked whether to go on past accesses that nothing orders."""
    global_order: Any
    """The accesses to global memory."""

    def coordinates(self, first: int, count: int) -> Integers:
        """The place in the grid of each CTA of some clusters."""
        ...

    def special(self, cohort: Any, name: str) -> Array:
        """A special register of the threads of a cohort."""
        ...

    def take_over(self) -> Integers | None:
        """The first CTA of the next cluster that was not launched."""
        ...

    def make_order(self, wave: Any) -> Any:
        """Return what compares the accesses of a wave."""
        ...

    def ended(self, wave: Any, cta: int, cohort: Any) -> None:
        """Look at what a CTA leaves, all of whose threads have ended."""
        ...

    def local_memory(self, wave: Any) -> Any:
        """The local memory of the threads of a wave."""
        ...

    def local_start(self, threads: Integers) -> NDArray[np.uint64]:
        """Return where the local memory of threads begins."""
        ...


class Surroundings(Protocol):
    """The wave of a cohort."""

    program: Any
    machine: Launch
    shared: Any
    order: Any
    named: dict[tuple[int, int], Any]
    mbarriers: dict[int, Any]
    cluster_barriers: dict[int, Any]
    state: dict[Any, Any]
    cohorts: list[Any]
    alive: Integers
    padded_threads: int
    cluster_size: int
    ctas: int
    first_cta: int
    """The number of its first CTA in the launch."""
    coordinates: Integers

    def special(self, cohort: Any, name: str) -> Array:
        """A special register of the threads of a cohort."""
        ...

    def shared_address(self, cohort: Any, offset: int) -> NDArray[np.uint32]:
        """The shared address of a byte of each thread's own CTA."""
        ...

    def rows(self, cohort: Any) -> Integers:
        """The place in the grid of each thread's CTA."""
        ...

    def everyone(self) -> list[Any]:
        """The cohorts of all threads that have not ended."""
        ...

    def passes_over(self, trap: Trap) -> bool:
        """Return whether the launch goes on past accesses that nothing orders."""
        ...


class Trap(Exception):
    """An error of the kernel, at the instruction that its cohort is at."""

    def __init__(self, message: str, notes: tuple[str, ...] = (), kind: type[Any] | None = None):
        super().__init__(message)
        self.message = message
        self.notes = notes
        self.kind = kind
