"""Special registers, and the size of the program."""

from __future__ import annotations

from tlx_xdsl.language.marks import builtin
from tlx_xdsl.language.objects import tensor

__all__ = ["globaltimer", "num_threads", "num_warps", "smid"]

_cuda = builtin("tl.extra.cuda")


@_cuda
def globaltimer() -> tensor:
    """The GPU's clock in nanoseconds, an int64 (PTX `%globaltimer`)."""
    ...


@_cuda
def smid() -> tensor:
    """The number of the multiprocessor that the program runs on, an int32 (PTX `%smid`)."""
    ...


@_cuda
def num_threads() -> int:
    """Threads of the program, a constexpr."""
    ...


@_cuda
def num_warps() -> int:
    """Warps of the program, a constexpr."""
    ...
