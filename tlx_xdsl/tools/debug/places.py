"""Places that the debugger watches: barriers, parts of buffers, and parts of arrays in global memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.global_memory import Buffer
from tlx_xdsl.interpreter.machine import ThreadBlock
from tlx_xdsl.interpreter.memory import UNINITIALIZED, View
from tlx_xdsl.interpreter.races import Footprint
from tlx_xdsl.numerics.arrays import Dtype, Integers, distinct

from .recording import Kind, Recorder

FEW = 4
"""Elements that a line shows."""


@dataclass
class Hit:
    """An event that has written a place."""

    event: int
    before: str
    """What was there before, in short."""
    after: str = ""


class Place(Protocol):
    """A place that events change."""

    text: str
    """Its name."""

    def state(self, recorder: Recorder) -> str:
        """Return what it is now, in short; empty where it is not there."""
        ...

    @property
    def is_barrier(self) -> bool:
        """Return whether each change counts, as opposed to each write."""
        ...

    def is_in(self, block: tuple[int, int], view: View) -> bool:
        """Return whether a write of a buffer, of a thread block by its cluster and rank, touches it."""
        ...

    def is_in_array(self, buffer: Buffer, offsets: Integers) -> bool:
        """Return whether a write of bytes of an array touches it."""
        ...


@dataclass
class _InBlock:
    """A place in a thread block."""

    text: str
    cluster: int
    rank: int

    def block(self, recorder: Recorder) -> ThreadBlock | None:
        """The thread block, while it is there."""
        return recorder.block(self.cluster, self.rank)

    def is_in(self, block: tuple[int, int], view: View) -> bool:
        """Return False: barriers change otherwise."""
        return False

    def is_in_array(self, buffer: Buffer, offsets: Integers) -> bool:
        """Return False: it is in no array."""
        return False


@dataclass
class BarrierPlace(_InBlock):
    """An mbarrier."""

    address: int
    is_barrier = True

    def state(self, recorder: Recorder) -> str:
        """Return its phase, and what that has got."""
        block = self.block(recorder)
        barrier = None if block is None else block.shared.barriers.get(self.address)
        if barrier is None:
            return ""
        count = f"{barrier.count - barrier.pending} of {barrier.count} arrivals"
        size = f", {barrier.expected - barrier.bytes} of {barrier.expected} bytes" if barrier.had_bytes else ""
        return f"phase {barrier.phase}, {count}{size}"


@dataclass
class NamedBarrierPlace(_InBlock):
    """A named barrier."""

    number: int
    is_barrier = True

    def state(self, recorder: Recorder) -> str:
        """Return its phase, and the threads that have arrived."""
        block = self.block(recorder)
        barrier = None if block is None else block.named_barriers.get(self.number)
        return "" if barrier is None else f"phase {barrier.phase}, {barrier.arrived} of {barrier.threads} threads"


@dataclass
class BufferPlace(_InBlock):
    """Elements of a buffer in shared or tensor memory."""

    memory: str
    offsets: NDArray[np.int64]
    dtype: Dtype
    footprint: Footprint
    is_barrier = False

    @staticmethod
    def of(text: str, cluster: int, rank: int, view: View, offsets: NDArray[np.int64]) -> BufferPlace:
        """The elements of a view that begin at those bytes of its memory."""
        footprint = Footprint.of(offsets, view.dtype.itemsize)
        return BufferPlace(text, cluster, rank, view.memory.name, offsets, view.dtype, footprint)

    def is_in(self, block: tuple[int, int], view: View) -> bool:
        """Return whether a byte of it is one of the view's."""
        return (
            block == (self.cluster, self.rank)
            and view.memory.name == self.memory
            and view.footprint.overlaps(self.footprint)
        )

    def state(self, recorder: Recorder) -> str:
        """Return its elements, where they are few."""
        block = self.block(recorder)
        if block is None:
            return ""
        memory = block.shared if self.memory == block.shared.name else block.tensor
        if self.footprint.end > len(memory.bytes):
            return ""
        if (memory.writers[self.offsets.ravel()] == UNINITIALIZED).all():
            return "uninitialized"
        return elements(memory.bytes.view(self.dtype)[self.offsets // self.dtype.itemsize])


@dataclass
class GlobalPlace:
    """Elements of an argument that is an array."""

    text: str
    array: NDArray[Any]
    indices: tuple[Any, ...]
    first: int
    """The address in this process of the lowest byte."""
    last: int
    """The one after the highest byte."""
    starts: NDArray[np.int64]
    """The address of each element in this process."""
    is_barrier = False

    @staticmethod
    def of(text: str, name: str, array: NDArray[Any], indices: list[Any]) -> GlobalPlace:
        """Part of the argument `name`. Raises CompilationError for indices that do not fit."""
        address: Any = array.__array_interface__["data"][0]
        starts = np.asarray(address, np.int64)
        for size, stride in zip(array.shape, array.strides, strict=True):
            starts = np.add.outer(starts, np.arange(size, dtype=np.int64) * stride)
        if indices and array.ndim > 1 and len(indices) == 1 and isinstance(indices[0], int):
            # A flat index, as pointers have.
            indices = [*np.unravel_index(int(indices[0]), array.shape)] if indices[0] < array.size else indices
        try:
            chosen = np.atleast_1d(starts[tuple(indices)])
        except IndexError as error:
            raise CompilationError(f"'{text}': '{name}' has the shape {list(array.shape)}") from error
        end = int(chosen.max()) + array.dtype.itemsize
        return GlobalPlace(text, array, tuple(indices), int(chosen.min()), end, distinct(chosen))

    def is_in(self, block: tuple[int, int], view: View) -> bool:
        """Return False: it is in no thread block."""
        return False

    def is_in_array(self, buffer: Buffer, offsets: Integers) -> bool:
        """Return whether a byte of it is one of those."""
        data: Any = buffer.bytes.__array_interface__["data"][0]
        if data + len(buffer.bytes) <= self.first or self.last <= data:
            return False
        written: NDArray[np.int64] = np.ravel(offsets) + data
        written = written[(written >= self.first) & (written < self.last)]
        at: Any = np.searchsorted(self.starts, written, side="right") - 1
        return bool(len(written)) and bool((written - self.starts[at] < self.array.dtype.itemsize).any())

    def state(self, recorder: Recorder) -> str:
        """Return its elements, where they are few."""
        return elements(self.array[self.indices])


def elements(values: Any) -> str:
    """Return up to a few elements, or how many there are."""
    flat = np.ravel(values)
    if flat.size > FEW:
        return ""
    return ", ".join(f"{each:g}" if flat.dtype.kind not in "biu?" else f"{each}" for each in flat.tolist())


class Touches:
    """A probe (`recording.Probe`) that finds the events which write or change a place."""

    def __init__(self, place: Place | None = None):
        self.place = place
        self.hits: list[Hit] = []
        self._state = ""
        self._open: Hit | None = None
        """A hit whose event is not over."""

    def before(self, event: int, recorder: Recorder) -> None:
        """See what the event before has made of the place."""
        if self.place is None:
            return
        if self.place.is_barrier:
            now = self.place.state(recorder)
            # The end of its thread block changes no barrier.
            is_there = isinstance(self.place, _InBlock) and self.place.block(recorder) is not None
            if now != self._state and event and is_there:
                self.hits.append(Hit(self._acting(event - 1, recorder), self._state, now))
            self._state = now
        elif self._open is not None:
            self._open.after = self.place.state(recorder)
            self._open = None

    def _acting(self, event: int, recorder: Recorder) -> int:
        """The event that has done something: the completion of a phase and a block are no acts."""
        while event > 0 and recorder.code(event).kind >= Kind.BLOCKED:
            event -= 1
        return event

    def wrote(self, event: int, recorder: Recorder, block: ThreadBlock, view: View) -> None:
        """See whether a write is of the place."""
        if self.place is not None and self.place.is_in((recorder.cluster_of(block), block.rank), view):
            self._hit(event, recorder)

    def wrote_global(self, event: int, recorder: Recorder, buffer: Buffer, offsets: Integers) -> None:
        """See whether a write is of the place."""
        if self.place is not None and self.place.is_in_array(buffer, offsets):
            self._hit(event, recorder)

    def _hit(self, event: int, recorder: Recorder) -> None:
        assert self.place is not None
        event = self._acting(event, recorder)
        if self.hits and self.hits[-1].event == event:
            return
        self._open = Hit(event, self.place.state(recorder))
        self.hits.append(self._open)

    def finish(self, recorder: Recorder) -> None:
        """See what the last event has made of the place."""
        self.before(len(recorder), recorder)
