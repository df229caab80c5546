"""Several GPUs that are not there: symmetric tensors as numpy arrays, one for each rank, all in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.element_types import BY_SPELLING
from tlx_xdsl.errors import InputTypeError
from tlx_xdsl.language.tlx.ranks import Peers

from ..driver.host_values import numpy_dtype, uninitialized
from ..launch.tensor_descriptor import dtype_name
from .engine import peers_of


@dataclass(frozen=True, eq=False)
class SymmetricArray:
    """A symmetric tensor of simulated ranks: `x[2]` is the numpy array of rank 2."""

    arrays: tuple[NDArray[Any], ...]
    """The memory of each rank; all have one shape and type."""
    tables: tuple[NDArray[np.int64], ...] = field(init=False)
    """What the kernel of each rank reads: the address on each rank, once the arrays have some, and its own rank."""

    def __post_init__(self) -> None:
        kinds = {(array.shape, array.dtype) for array in self.arrays}
        if len(kinds) != 1:
            found = " and ".join(sorted(f"{dtype} of {list(shape)}" for shape, dtype in kinds)) or "none"
            raise InputTypeError(f"a symmetric tensor needs arrays of one shape and type, found {found}")
        world = len(self.arrays)
        tables = tuple(np.array([0] * world + [rank], np.int64) for rank in range(world))
        object.__setattr__(self, "tables", tables)

    def __getitem__(self, rank: int) -> NDArray[Any]:
        """The array of a rank."""
        return self.arrays[rank]

    def __len__(self) -> int:
        """Return the number of ranks."""
        return len(self.arrays)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The values that it is made of."""
        return self.arrays

    def peers(self, rank: int) -> Peers:
        """Return the argument that the kernel of a rank gets."""
        spelling = cast(str, dtype_name(self.arrays[0].dtype))
        return peers_of(self.tables[rank], len(self.arrays), cast(str, BY_SPELLING[spelling].name))

    def connect(self, addresses: Sequence[int]) -> None:
        """Put the address of each rank's array into the tables that kernels read."""
        for table in self.tables:
            table[:-1] = addresses


@dataclass(frozen=True, eq=False)
class PerLaunch:
    """A value for each of several launches."""

    values: tuple[Any, ...]

    @property
    def parts(self) -> tuple[Any, ...]:
        """The values that it is made of."""
        return self.values


def per_launch(values: Sequence[Any]) -> PerLaunch:
    """Make an argument of values, one for each of `launches`, such as the number of the launch that signals count."""
    return PerLaunch(tuple(values))


@dataclass(frozen=True, eq=False)
class SimulatedRanks:
    """The engine (`engine.Ranks`) of ranks that are simulated: it makes symmetric tensors for `world_size` GPUs.

    limit_ns: nanoseconds after which kernels of `tlx_xdsl.kernels.comm` stop waiting for another rank; None for never.
    They pass when nothing else can move.

    >>> ranks = SimulatedRanks(2)
    >>> x = ranks.allocate((4,), "float32")
    >>> len(x), x[1].shape
    (2, (4,))
    """

    world_size: int
    rank: None = None
    limit_ns: int | None = None

    def allocate(self, shape: int | Sequence[int], dtype: Any = "fp32") -> SymmetricArray:
        """Make a symmetric tensor in whose memory nothing has been written yet: to read it is a fault.

        Raises TypeError for an element type that kernels do not have.
        """
        return SymmetricArray(tuple(uninitialized(shape, dtype) for _ in range(self.world_size)))

    def signals(self, count: int) -> SymmetricArray:
        """Make `count` counters on each rank, int64 zeros, for `tlx.signal` and `tlx.wait_signal`."""
        return SymmetricArray(tuple(np.zeros(count, np.int64) for _ in range(self.world_size)))

    def pointers(self, tensor: SymmetricArray) -> tuple[int, ...]:
        """Return the addresses of the last launch that had the tensor; zeros before the first one."""
        return tuple(int(address) for address in tensor.tables[0][:-1])

    def barrier(self) -> None:
        """Return at once: a launch on simulated ranks has ended on all of them when it returns."""


def symmetric(arrays: Sequence[Any]) -> SymmetricArray:
    """Make a symmetric tensor of one numpy array for each rank, which kernels read and write in place.

    Raises TypeError for arrays of several shapes or types, and for elements that kernels do not have.
    """
    held = tuple(np.asanyarray(array) for array in arrays)
    for array in held:
        if numpy_dtype(array.dtype) is None:
            raise InputTypeError(
                f"a symmetric tensor has elements of the type {array.dtype}, which kernels do not have"
            )
    return SymmetricArray(held)
