"""Special registers, and the size of the program."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.marks import builtin

__all__ = ["globaltimer", "num_threads", "num_warps", "smid"]

_cuda = builtin("tl.extra.cuda")


@_cuda
def globaltimer() -> Any:
    """The GPU's clock in nanoseconds, an int64 (PTX `%globaltimer`)."""


@_cuda
def smid() -> Any:
    """The number of the multiprocessor that the program runs on, an int32 (PTX `%smid`)."""


@_cuda
def num_threads() -> Any:
    """Threads of the program, a constexpr."""


@_cuda
def num_warps() -> Any:
    """Warps of the program, a constexpr."""
