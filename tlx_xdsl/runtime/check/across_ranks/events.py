"""Events of a program that others can notice: accesses to global memory, signals, waits and fences."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from tlx_xdsl.dialects.tt import MemSyncScope
from tlx_xdsl.numerics.arrays import distinct

from .values import UNKNOWN, Growing, Value

_SHIFT = 40
"""Bits of the offset in an address: arrays are so far apart that none reaches into another."""


class UnprovedError(Exception):
    """An operation at which the proof stops."""

    def __init__(self, op: Operation, reason: str, notes: tuple[tuple[str, Operation], ...] = ()):
        self.op = op
        self.reason = reason
        self.notes = notes
        """Other lines, and what they are."""
        super().__init__(reason)


class DeadlockError(UnprovedError):
    """A wait that no order of the programs ends."""


@dataclass(frozen=True, eq=False)
class Region:
    """An array of one rank, or the table of a symmetric tensor."""

    name: str
    rank: int
    number: int
    values: NDArray[Any]
    """What it holds before the first launch."""
    is_table: bool = False
    is_symmetric: bool = False

    @property
    def base(self) -> int:
        """Address of its first byte."""
        return (self.number + 1) << _SHIFT

    def __str__(self) -> str:
        return f"'{self.name} of rank {self.rank}'"


class Space:
    """All arrays of all ranks."""

    def __init__(self) -> None:
        self.regions: list[Region] = []

    def add(self, name: str, rank: int, values: NDArray[Any], *, table: bool = False, shared: bool = False) -> Region:
        """Give an array its addresses."""
        region = Region(name, rank, len(self.regions), values, table, shared)
        self.regions.append(region)
        return region

    def at(self, op: Operation, address: int) -> Region:
        """The array that an address is in, or past the end of. Raises UnprovedError for an address of none."""
        number = (address >> _SHIFT) - 1
        if not 0 <= number < len(self.regions):
            raise UnprovedError(op, "the address is in no array, or a rank outside of the world was asked for")
        return self.regions[number]

    def bytes_at(self, op: Operation, addresses: NDArray[np.int64], size: int) -> tuple[Region, NDArray[np.int64]]:
        """The array of addresses, and the number of each byte in it, in order.

        Raises UnprovedError where they are of several arrays, or out of bounds.
        """
        starts = distinct(addresses)
        region = self.at(op, int(starts[0]))
        offsets = starts - region.base
        if int(offsets[-1]) + size > region.values.nbytes or self.at(op, int(starts[-1])) is not region:
            last = int(offsets[-1])
            raise UnprovedError(op, f"byte {last} is accessed of {region}, which has {region.values.nbytes}")
        return region, distinct((offsets[:, None] + np.arange(size)).ravel())

    def held(self, op: Operation, address: int, dtype: np.dtype[Any]) -> Any:
        """Return the number at an address before the first launch."""
        region = self.at(op, address)
        offset = address - region.base
        if not 0 <= offset <= region.values.nbytes - dtype.itemsize:
            raise UnprovedError(op, f"byte {offset} is accessed of {region}, which has {region.values.nbytes}")
        raw = np.ascontiguousarray(region.values).reshape(-1).view(np.uint8)
        return raw[offset : offset + dtype.itemsize].view(dtype)[0]


class Role(Enum):
    """The part that an access has in the protocol."""

    PLAIN = auto()
    SIGNAL = auto()
    LOOK = auto()
    """Reads a counter after a wait for it, by an addition of 0."""
    DRAW = auto()


@dataclass(frozen=True, eq=False)
class Access:
    """An access to bytes of an array."""

    op: Operation
    region: Region
    bytes: NDArray[np.int64]
    """Their numbers in the array, in order; with some masks it may access less."""
    writes: bool
    scope: MemSyncScope | None
    """The threads among which it is atomic; None where it is not."""
    size: int
    """Bytes of an element."""
    value: Value = UNKNOWN
    """What is stored, where that is one number."""
    role: Role = Role.PLAIN

    def overlaps(self, other: Access) -> bool:
        """Return whether two accesses have a byte in common."""
        mine, theirs = self.bytes, other.bytes
        if self.region is not other.region or mine[-1] < theirs[0] or theirs[-1] < mine[0]:
            return False
        if len(mine) == mine[-1] - mine[0] + 1 and len(theirs) == theirs[-1] - theirs[0] + 1:
            return True
        return bool(np.intersect1d(mine, theirs, assume_unique=True).size)

    def conflicts(self, other: Access, *, same_gpu: bool) -> bool:
        """Return whether the order of two accesses by different programs matters."""
        matters = (self.writes or other.writes) and not self._excludes(other, same_gpu)
        return matters and self.overlaps(other)

    def _excludes(self, other: Access, same_gpu: bool) -> bool:
        """Return whether one is atomic for the other."""
        wide = (MemSyncScope.SYSTEM, MemSyncScope.GPU) if same_gpu else (MemSyncScope.SYSTEM,)
        return self.scope in wide and other.scope in wide and self.size == other.size


@dataclass(frozen=True, eq=False)
class Signal:
    """A change of a counter: an addition, or a new value."""

    op: Operation
    address: int
    adds: bool
    value: int | Growing
    releases: bool
    scope: MemSyncScope
    bits: int


@dataclass(frozen=True, eq=False)
class Wait:
    """A wait until a counter is at least a value."""

    op: Operation
    address: int
    value: int | Growing
    acquires: bool
    scope: MemSyncScope
    bits: int


@dataclass(frozen=True, eq=False)
class Fence:
    """A fence, of the GPU or of the system."""

    op: Operation
    system: bool


@dataclass(frozen=True, eq=False)
class Meeting:
    """A barrier of all threads of a program."""

    op: Operation


@dataclass(frozen=True, eq=False)
class Draw:
    """An addition of 1 that numbers the programs of a rank."""

    op: Operation
    address: int
    orders: bool
    """Whether it releases and acquires."""


Event: TypeAlias = Access | Signal | Wait | Fence | Meeting | Draw


@dataclass(frozen=True, eq=False)
class Read:
    """A load of one number whose value the path depends on: it comes before what others store there in a launch."""

    access: Access
    address: int
