"""Addresses of shared memory as the numbers that PTX computes with.

A number says which CTA's memory it is (PTX ISA, "mapa"), whose bytes these are, and which byte it is:

| bits | meaning |
|---|---|
| 31 to 28 | rank of the CTA in its cluster |
| 27 to 18 | family of buffers |
| 17 to 0 | byte |

The hardware has no families. Here they keep apart what lies at one place in turn, as for every other access; an address
that is moved by less than the memory of a multiprocessor keeps its family.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.layouts.encodings import SharedLayout
from tlx_xdsl.numerics.arrays import Array

from .descriptor import Descriptor
from .faults import fault_at
from .machine import Task
from .memory import Memory, View

_RANKS, _FAMILIES, _BYTES = 4, 10, 18
"""Bits of each part."""
_BYTE_MASK = (1 << _BYTES) - 1


@dataclass(frozen=True)
class TensorMap:
    """The tensor descriptor that an address refers to."""

    descriptor: Descriptor
    layout: SharedLayout
    """The layout of the tile of a copy."""


@dataclass(frozen=True)
class Address:
    """A place in the shared memory of a CTA."""

    memory: Memory
    family: int
    byte: int


def encode(op: Operation, view: View, byte: int) -> int:
    """The number for a byte of the memory of `view`, in its family; as a signed number of 32 bits.

    Raises Fault where there are more bytes or families than a number can distinguish.
    """
    if byte >= 1 << _BYTES or view.family.number >= 1 << _FAMILIES:
        raise fault_at(
            op,
            f"the address of '{view.name}' is asked for: the interpreter can give those of {1 << _BYTES} bytes of "
            f"shared memory and of {1 << _FAMILIES} buffers, this is byte {byte} of buffer {view.family.number}",
        )
    number = (view.memory.rank << _FAMILIES | view.family.number) << _BYTES | byte
    return int(np.uint32(number).view(np.int32))


def decode(task: Task, op: Operation, number: int) -> Address:
    """The place that a number stands for.

    Raises Fault for a number that is no address.
    """
    rank, family, byte = number >> (_FAMILIES + _BYTES), number >> _BYTES & (1 << _FAMILIES) - 1, number & _BYTE_MASK
    blocks = task.cluster.blocks
    if rank < len(blocks):
        memory = blocks[rank].shared
        if 0 < family <= len(memory.placement.families) and byte < memory.placement.end:
            memory.grow(memory.placement.end)
            return Address(memory, family, byte)
    raise fault_at(op, f"{number:#x} is no address of a buffer in shared memory")


def mapped(task: Task, op: Operation, numbers: Array, rank: int) -> Array:
    """The same places in the memory of CTA `rank` (PTX ISA, "mapa").

    Raises Fault when there is no such CTA.
    """
    if not 0 <= rank < (count := len(task.cluster.blocks)):
        raise fault_at(op, f"there is no CTA {rank} in a cluster of {count}")
    low = np.uint32((1 << (_FAMILIES + _BYTES)) - 1)
    return numbers & low | np.uint32(rank << (_FAMILIES + _BYTES))


def remember(view: View) -> None:
    """Note that the address of a view was taken, so that whoever uses the address finds its name and its elements."""
    key = (view.family.number, view.address)
    # The last one is the latest.
    view.memory.pointed.pop(key, None)
    view.memory.pointed[key] = view


def view_at(task: Task, op: Operation, number: int, size: int) -> View:
    """The `size` bytes at an address: the buffer whose address was taken, or bytes of its family.

    Raises Fault for a number that is no address.
    """
    at = decode(task, op, number)
    known = task.block.shared.pointed.get((at.family, at.byte))
    if known is not None and known.size == size:
        return known.elsewhere(at.memory)
    offsets = at.byte + np.arange(size, dtype=np.int64)
    return bytes_view(at, offsets)


def bytes_view(at: Address, offsets: Array, dtype: np.dtype[np.generic] | None = None, alignment: int = 1) -> View:
    """Elements of the family of `at`, bytes by default, at any places of its memory."""
    family = at.memory.placement.families[at.family - 1]
    return View(at.memory, offsets, dtype or np.dtype(np.uint8), family, family.name, alignment)


def buffer_at(task: Task, op: Operation, number: int) -> View | None:
    """The buffer whose address was taken, and is `number`."""
    at = decode(task, op, number)
    known = task.block.shared.pointed.get((at.family, at.byte))
    return None if known is None else known.elsewhere(at.memory)
