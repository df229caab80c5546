"""Symmetric tensors on GPUs: what engines make of an address of each rank, whichever library has mapped it."""

# torch is no dependency: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from tlx_xdsl.element_types import BY_SPELLING
from tlx_xdsl.language.tlx.ranks import Peers

from ..launch.tensor_descriptor import dtype_name
from .engine import peers_of


@dataclass(frozen=True, eq=False)
class SymmetricTensor:
    """A symmetric tensor: `local` is the torch tensor of this rank."""

    local: Any
    addresses: tuple[int, ...]
    """On each rank."""
    rank: int
    """The rank of this process."""
    table: Any
    """A torch tensor on the GPU: these addresses, then this rank."""
    handle: Any
    """The library's, which keeps the memory of the others mapped."""
    element: str

    def peers(self, rank: int) -> Peers:
        """Return the argument that the kernel of this rank gets. Raises ValueError for another rank."""
        if rank != self.rank:
            raise ValueError(f"the kernel of rank {rank} gets its argument in its own process, of rank {self.rank}")
        return peers_of(self.table, len(self.addresses), self.element)


class DeviceRanks(ABC):
    """The common part of engines of GPUs: each process has one rank, and torch's tensors are its memory."""

    _torch: Any

    @abstractmethod
    def allocate(self, shape: int | Sequence[int], dtype: Any) -> SymmetricTensor:
        """Allocate memory that all ranks reach. All ranks call this, in one order."""

    @abstractmethod
    def barrier(self) -> None:
        """Wait on the host until all ranks have come here, and what their GPUs were given before has ended."""

    def signals(self, count: int) -> SymmetricTensor:
        """Allocate `count` counters on each rank, int64 zeros. They are zero on all ranks when this returns."""
        pads = self.allocate(count, self._torch.int64)
        pads.local.zero_()
        self.barrier()
        return pads

    def pointers(self, tensor: SymmetricTensor) -> tuple[int, ...]:
        """Return the address of a symmetric tensor on each rank."""
        return tensor.addresses


def element_of(engine: str, dtype: Any) -> str:
    """Return the element type of torch's `dtype`. Raises TypeError for a type that kernels do not have."""
    spelling = dtype_name(dtype)
    if spelling is None:
        raise TypeError(f"{engine}.allocate: argument 'dtype': expected a type that kernels have, got {dtype}")
    return cast(str, BY_SPELLING[spelling].name)


def sizes_of(shape: int | Sequence[int]) -> list[int]:
    """Return the extents of a shape."""
    return [shape] if isinstance(shape, int) else list(shape)


def symmetric_tensor(
    engine: str, local: Any, addresses: Sequence[int | None], rank: int, device: Any, handle: Any, element: str
) -> SymmetricTensor:
    """Make a symmetric tensor, and its table on `device`.

    Raises RuntimeError where a rank's memory has no address here, as that of another host.
    """
    if missing := [str(number) for number, address in enumerate(addresses) if not address]:
        raise RuntimeError(
            f"{engine}.allocate: expected an address of each rank's memory, got none of rank {', '.join(missing)}: "
            "kernels load and store, which reaches the GPUs of one host, or those that NVLink joins"
        )
    torch: Any = importlib.import_module("torch")
    found = tuple(address for address in addresses if address is not None)
    table = torch.tensor([*found, rank], dtype=torch.int64, device=device)
    return SymmetricTensor(local, found, rank, table, handle, element)
