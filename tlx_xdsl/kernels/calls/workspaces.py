"""Memory that a call needs only while it runs, such as sums of parts of K: one piece for each stream, kept and grown.

Launches in one stream follow each other, so they share a piece; those in different streams may run at once and have
their own. What the launches of a call leave there for each other must not be overwritten by another thread that uses
the same stream: a piece is held while a call is enqueued.

A piece is the CUDA driver's, allocated in the order of its stream (cuMemAllocAsync), not torch's: it stays, and torch
may be allocating from a pool in which nothing may stay, as it does for `torch.compile(mode="reduce-overhead")` before
it captures. One that has become too small is given back in the order of its stream, after the launches that use it, so
that nothing waits. Neither breaks what another thread captures. At the end of the process the memory goes with the
GPU's context.

Before each piece lie COUNTER_BYTES that are zero whenever no call of the stream runs: a kernel whose programs count
themselves there, so that the last one knows that it is, puts zeros back.

While a CUDA graph is captured each call gets memory of its own from torch, as a tensor would, which is from the graph's
pool: the graph keeps it, and gives it to what follows in the graph. The driver's would become nodes of the graph, of
which then no more than one instance may exist at a time ("CUDA Programming Guide", graph memory nodes).

A stream that is destroyed leaves its piece to the next one that has its handle: who destroys a stream, which torch does
to none of its own, waits for its work first.
"""

from __future__ import annotations

import threading
from typing import Any

from tlx_xdsl.runtime.launch.cuda_driver import ERROR_OUT_OF_MEMORY, CudaDriver, CudaDriverError, default_driver

from .operands import torch_module

ALIGNMENT = 512
"""Bytes: that of torch's memory, and of each part of a workspace."""


COUNTER_BYTES = ALIGNMENT
"""Before the address that is lent."""


def aligned(size: int) -> int:
    """Bytes, rounded up to a multiple of ALIGNMENT."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Piece:
    """The memory of one stream of a GPU: `size` bytes at `address`, for whoever holds `in_use`."""

    def __init__(self, device: int, stream: int) -> None:
        self.in_use = threading.Lock()
        self.device = device
        self.stream = stream
        self.size = 0
        self.address = 0

    def grow(self, size: int) -> None:
        """Be of `size` bytes, for what is enqueued from now on; the GPU is the current one.

        Raises torch's OutOfMemoryError when there is not enough memory, also without what torch keeps for later.
        """
        driver = default_driver()
        driver.ensure_context(self.device)
        with driver.beside_captures():
            if self.size:
                # The old memory goes first: the new one may be made of it.
                address, self.size, self.address = self.address, 0, 0
                driver.free_in_order(address - COUNTER_BYTES, self.stream)
            start = self._allocated(driver, COUNTER_BYTES + size)
            driver.clear_in_order(start, COUNTER_BYTES, self.stream)
        self.address, self.size = start + COUNTER_BYTES, size

    def _allocated(self, driver: CudaDriver, size: int) -> int:
        try:
            return driver.allocate_in_order(size, self.stream)
        except CudaDriverError as error:
            if error.code != ERROR_OUT_OF_MEMORY:
                raise
        cuda = torch_module().cuda
        cuda.empty_cache()
        try:
            return driver.allocate_in_order(size, self.stream)
        except CudaDriverError as error:
            if error.code != ERROR_OUT_OF_MEMORY:
                raise
            raise cuda.OutOfMemoryError(
                f"cuda:{self.device}: expected {size} bytes to be free for the workspace of a stream, got {error}"
            ) from error

    def give_back(self) -> None:
        """Free the memory, when all work of the GPU, which is the current one, has ended."""
        driver = default_driver()
        driver.ensure_context(self.device)
        # Not in the order of the stream, which may have been destroyed.
        driver.synchronize()
        address, self.size, self.address = self.address, 0, 0
        driver.free(address - COUNTER_BYTES)


def captured(device: int, size: int, counts: bool) -> Any:
    """Memory for one call that is captured, a tensor of bytes: `size` at its end, after counters if it `counts`."""
    torch = torch_module()
    # Zeros are written in the graph, at each replay.
    allocate = torch.zeros if counts else torch.empty
    return allocate((COUNTER_BYTES if counts else 0) + size, dtype=torch.uint8, device=f"cuda:{device}")


class Workspaces:
    """The pieces of all streams of all GPUs."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[int, int], Piece] = {}

    def piece(self, device: int, stream: int) -> Piece:
        """Return the piece of memory that a stream has."""
        # One call of a dictionary, which threads that come at once share.
        return self._pieces.setdefault((device, stream), Piece(device, stream))

    def clear(self) -> None:
        """Give all memory back, when all work of the GPUs has ended; no graph is being captured.

        Later calls allocate anew.
        """
        for piece in tuple(self._pieces.values()):
            # The piece stays: a call in another thread may be waiting for it.
            with piece.in_use:
                if piece.size:
                    with torch_module().cuda.device(piece.device):
                        piece.give_back()


WORKSPACES = Workspaces()
"""Those of this process."""
