"""Global scratch memory of kernels: where a kernel keeps the tensor descriptors that it makes.

Each CTA has its part, in the order of its number in the grid. Launches in one stream follow each other, so they share
one piece of memory, which grows with the grid; launches in different streams may run at once, so each stream has its
own. A piece that has become too small stays until the last launch that was bound to it is forgotten.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver


@dataclass(eq=False)
class DeviceMemory:
    """Memory on the GPU, given back with the last reference to this object."""

    address: int
    size: int

    @staticmethod
    def allocate(driver: CudaDriver, size: int) -> DeviceMemory:
        """`size` bytes in the current context, aligned to at least 256 bytes.

        Raises CudaDriverError when there is not enough memory.
        """
        memory = DeviceMemory(driver.allocate(size), size)
        # The driver waits for kernels that use it. At the end of the process the context goes with all of its memory.
        weakref.finalize(memory, driver.free, memory.address).atexit = False
        return memory


@dataclass(frozen=True)
class Scratch:
    """The scratch memory of one kernel."""

    driver: CudaDriver
    size: int
    """Bytes per CTA, as the compiler has rounded them up."""
    _pieces: dict[tuple[int, int], DeviceMemory] = field(default_factory=dict[tuple[int, int], DeviceMemory])
    """By context and stream."""

    def memory(self, grid: Sequence[int], context: int, stream: int) -> DeviceMemory | None:
        """Memory for a launch of `grid` CTAs in a stream of the current context; None for a kernel that needs none.

        Raises CudaDriverError when there is not enough memory.
        """
        wanted = self.size * math.prod(grid)
        if not wanted:
            return None
        piece = self._pieces.get((context, stream))
        if piece is None or piece.size < wanted:
            piece = self._pieces[context, stream] = DeviceMemory.allocate(self.driver, wanted)
        return piece
