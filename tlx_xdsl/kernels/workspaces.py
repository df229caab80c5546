"""Memory that a call needs only while it runs, such as sums of parts of K: one piece for each stream, kept and grown.

Launches in one stream follow each other, so they share a piece; those in different streams may run at once and have
their own. A piece is torch's (`torch.empty` on its stream): one that has become too small goes back to torch's
allocator, which gives it out again on the same stream only, where what comes next waits for the launches that use it.
What the launches of a call leave there for each other must not be overwritten by another thread that uses the same
stream: a piece is held while a call is enqueued.

While a CUDA graph is captured each call gets memory of its own from the graph's pool, as a tensor of torch's would: the
graph keeps it, and gives it to what follows in the graph.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tlx_xdsl.kernels.operands import torch_module

ALIGNMENT = 512
"""Bytes: that of torch's memory, and of each part of a workspace."""


def aligned(size: int) -> int:
    """Bytes, rounded up to a multiple of ALIGNMENT."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class _Piece:
    """The memory of one stream."""

    def __init__(self) -> None:
        self.in_use = threading.Lock()
        self.tensor: Any = None
        self.size = 0
        self.address = 0

    def grow(self, device: int, size: int) -> None:
        """Be of `size` bytes."""
        # The old memory goes first: the new one may be made of it.
        self.tensor, self.size = None, 0
        self.tensor = _allocated(device, size)
        self.size, self.address = size, self.tensor.data_ptr()


class Workspaces:
    """The pieces of all streams of all GPUs."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[int, int], _Piece] = {}

    def lend(self, device: int, stream: int, size: int, is_capturing: bool, use: Callable[[int], None]) -> None:
        """Call `use` with the address of `size` bytes, for what it enqueues on the stream that is current in torch."""
        if is_capturing:
            memory = _allocated(device, size)
            use(memory.data_ptr())
            return
        piece = self._pieces.get((device, stream))
        if piece is None:
            piece = self._pieces.setdefault((device, stream), _Piece())
        with piece.in_use:
            if piece.size < size:
                piece.grow(device, size)
            use(piece.address)

    def clear(self) -> None:
        """Give all memory back to torch. Later calls allocate anew."""
        self._pieces.clear()


WORKSPACES = Workspaces()
"""Those of this process."""


def _allocated(device: int, size: int) -> Any:
    torch = torch_module()
    return torch.empty(size, dtype=torch.uint8, device=f"cuda:{device}")
