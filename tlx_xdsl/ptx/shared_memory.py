"""The shared memory of the CTAs of a wave, one after the other in one array.

Each byte has a mark that says whether anything was written there. Addresses are checked: below the first byte and
past the last one, and that they are multiples of the size of the access (PTX ISA, "Addresses as Operands").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Bytes, Integers

from .memory.surroundings import Surroundings, Trap
from .read.symbols import RANK_SHIFT, SHARED_START, aligned

if TYPE_CHECKING:
    from .cohort import Cohort

OFFSET = (1 << RANK_SHIFT) - 1
"""The bits of an address within a CTA."""


class SharedMemory:
    """`size` bytes for each CTA."""

    def __init__(self, wave: Surroundings, size: int):
        self.size = size
        self.end = SHARED_START + size
        """The first offset that is past a CTA's memory."""
        self.stride = aligned(self.end, 1024)
        """Bytes from a CTA's memory to that of the next one."""
        self.wave = wave
        self.bytes: Bytes = np.zeros(self.stride * wave.ctas, np.uint8)
        self.written: NDArray[np.bool_] = np.zeros(self.stride * wave.ctas, np.bool_)
        self._views = {size: self.bytes.view(f"u{size}") for size in (1, 2, 4, 8)}

        self.rows16 = self.bytes.view(np.uint64).reshape(-1, 2)
        """The same in units of 16 bytes."""
        self.marks16 = self.written.reshape(-1, 16)

    def places(self, cohort: Cohort, addresses: Array, where: Any, size: int, what: str) -> Integers:
        """The places in `bytes` of accesses of `size` bytes by the threads `where` of a cohort.

        Raises Trap for addresses that are misaligned, or in no memory of the cluster.
        """
        # An address of 32 bits, whatever the register that holds it.
        addresses = addresses.astype(np.int64)
        base = cohort.base if where is None else cohort.base[where]
        offsets = addresses
        if self.wave.cluster_size > 1:
            ranks, offsets = addresses >> RANK_SHIFT, addresses & OFFSET
            first = base // self.stride // self.wave.cluster_size * self.wave.cluster_size
            if len(ranks) and int(ranks.max()) >= self.wave.cluster_size:
                raise Trap(f"the shared address {int(addresses.max()):#x} is in no CTA of the cluster")
            base = (first + ranks) * self.stride
        if len(offsets):
            low, high = int(offsets.min()), int(offsets.max())
            if low < SHARED_START or high + size > self.end:
                wrong = low if low < SHARED_START else high
                raise Trap(
                    f"{what} out of bounds: {size} bytes at byte {wrong - SHARED_START} of shared memory, which has "
                    f"{self.size}"
                )
            if size > 1 and int(np.bitwise_or.reduce(offsets)) & (size - 1):
                wrong = int(offsets[(offsets & (size - 1)) != 0][0])
                raise Trap(
                    f"misaligned {what}: byte {wrong - SHARED_START} of shared memory is {wrong % size} past a "
                    f"multiple of {size}"
                )
        return base + offsets

    def load(self, places: Integers, item: int, count: int) -> Array:
        """Rows of `count` elements of `item` bytes.

        Raises Trap for bytes that nothing has written.
        """
        size = item * count
        self.check_written(places, size)
        if count == 1:
            return self._views[item][places >> item.bit_length() - 1]
        rows = self._views[item].reshape(-1, count)
        return rows[places >> size.bit_length() - 1]

    def check_written(self, places: Integers, size: int) -> None:
        """Check that something has written `size` bytes at each place.

        Raises Trap, with the first byte that nothing has written.
        """
        if self.wave.machine.allows_uninitialized:
            return
        marks = self.written[places] if size == 1 else self.written.reshape(-1, size)[places >> size.bit_length() - 1]
        if not marks.all():
            flat = np.argwhere(~marks.reshape(len(places), -1))[0]
            byte = int(places[flat[0]]) + int(flat[1])
            raise Trap(f"byte {byte % self.stride - SHARED_START} of shared memory is read, which nothing has written")

    def store(self, places: Integers, values: Array, item: int, count: int) -> None:
        """Write rows of `count` elements of `item` bytes; of several threads that write to one place, the last wins."""
        size = item * count
        if count == 1:
            self._views[item][places >> item.bit_length() - 1] = values
        else:
            self._views[item].reshape(-1, count)[places >> size.bit_length() - 1] = values
        self.mark(places, size)

    def mark(self, places: Integers, size: int) -> None:
        """Note that `size` bytes at each place are written."""
        if size == 1:
            self.written[places] = True
        else:
            self.written.reshape(-1, size)[places >> size.bit_length() - 1] = True

    def check_units(self, units: Integers) -> None:
        """Check that something has written all bytes of units of 16.

        Raises Trap, with the first byte that nothing has written.
        """
        self.check_written(units * 16, 16)

    def gather(self, places: Integers) -> Bytes:
        """Single bytes.

        Raises Trap for what nothing has written.
        """
        if not self.wave.machine.allows_uninitialized:
            marks = self.written[places]
            if not marks.all():
                byte = int(places.ravel()[np.flatnonzero(~marks.ravel())[0]])
                raise Trap(
                    f"byte {byte % self.stride - SHARED_START} of shared memory is read, which nothing has written"
                )
        return self.bytes[places]

    def scatter(self, places: Integers, values: Bytes) -> None:
        """Write single bytes."""
        self.bytes[places] = values
        self.written[places] = True

    def check_range(self, cta: int, offset: int, size: int, what: str) -> int:
        """The place of `size` bytes from an offset in a CTA's memory on.

        Raises Trap where they are not all there.
        """
        if offset < SHARED_START or offset + size > self.end:
            raise Trap(
                f"{what} out of bounds: {size} bytes at byte {offset - SHARED_START} of shared memory, which has "
                f"{self.size}"
            )
        return cta * self.stride + offset
