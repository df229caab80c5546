"""The engine of several GPUs: five functions, which whoever allocates memory that all ranks reach has to offer.

`torch_memory.TorchRanks` is one for processes that torchrun starts, one for each GPU; `simulated.SimulatedRanks` has
all ranks in one process, for the interpreter. A kernel is the same for both: it takes the peers of symmetric tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tlx_xdsl.language.core import constexpr
from tlx_xdsl.language.dtypes import dtype
from tlx_xdsl.language.tlx.ranks import Peers


class Symmetric(Protocol):
    """Memory of one shape and type on each rank."""

    def peers(self, rank: int) -> Peers:
        """Return the argument that the kernel of a rank gets."""
        ...


class Ranks(Protocol):
    """The ranks that share memory."""

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        ...

    @property
    def rank(self) -> int | None:
        """The rank of this process; None where it has all of them."""
        ...

    def allocate(self, shape: int | Sequence[int], dtype: Any) -> Symmetric:
        """Allocate memory that all ranks reach. All ranks call this, in one order."""
        ...

    def signals(self, count: int) -> Symmetric:
        """Allocate `count` counters on each rank, int64 zeros. They are zero on all ranks when this returns."""
        ...

    def pointers(self, tensor: Any) -> tuple[int, ...]:
        """Return the address of a symmetric tensor on each rank."""
        ...

    def barrier(self) -> None:
        """Wait on the host until all ranks have come here, and what their GPUs were given before has ended."""
        ...


def peers_of(table: Any, world: int, element: str) -> Peers:
    """Return the argument of a kernel: the table of addresses, and what is known when it is compiled."""
    return Peers(table, constexpr(world), constexpr(dtype(element)))
