"""Communication between cores: pipes carry blocks, semaphores count.

Coordinates of cores are (x, y). A range has a slice for each coordinate that varies: `(slice(1, 4), 0)` are the cores 1
to 3 of row 0; a slice without bounds is the whole grid in that direction.
"""

from __future__ import annotations

from typing import Any

from .marks import kernel_object

__all__ = ["Pipe", "PipeNet", "RemoteSemaphore", "Semaphore"]


@kernel_object
class Pipe:
    """A way for blocks from the core `src` to the core `dst`, or to all of the cores `dst_range`.

    `ttl.copy(block, pipe)` sends on the source, `ttl.copy(pipe, block)` receives on each destination. The blocks on
    both sides are of circular buffers of the same type, or of the same one.
    """

    src: tuple[int, int]
    dst: Any

    def __init__(self, src: Any, dst: Any = None, *, dst_range: Any = None) -> None:
        """Say where the pipe begins and ends.

        Raises CompilationError in a kernel for cores outside of its grid, and for no or two destinations.
        """

    def if_src(self, fn: Any) -> None:
        """Run `fn(pipe)` on the core where the pipe begins."""

    def if_dst(self, fn: Any) -> None:
        """Run `fn(pipe)` on the cores where the pipe ends."""


@kernel_object
class PipeNet:
    """Several pipes with the same purpose: `ttl.PipeNet([ttl.Pipe(...), ...])`."""

    def __init__(self, pipes: Any) -> None:
        """Gather pipes."""

    def if_src(self, fn: Any) -> None:
        """Run `fn(pipe)` for each pipe that begins on the core."""

    def if_dst(self, fn: Any) -> None:
        """Run `fn(pipe)` for each pipe that ends on the core."""


@kernel_object
class Semaphore:
    """A counter that each core has. It is used in data movement threads."""

    def __init__(self, initial: Any = 0) -> None:
        """Make a semaphore whose value is `initial` on each core."""

    def wait_eq(self, value: Any) -> None:
        """Wait until the core's own counter is `value`."""

    def wait_ge(self, value: Any) -> None:
        """Wait until the core's own counter is at least `value`."""

    def wait_min(self, value: Any) -> None:
        """The same as `wait_ge`."""

    def set(self, value: Any) -> None:
        """Set the core's own counter to `value`."""

    def inc(self, value: Any = 1) -> None:
        """Add `value` to the core's own counter."""

    def get_remote(self, core: Any) -> Any:
        """The counter of the core (x, y): a `RemoteSemaphore`."""

    def get_remote_multicast(self, core_range: Any = None, *, loopback: Any = None) -> Any:
        """The counters of a range of cores, all if none is given: a `RemoteSemaphore` that can only be set.

        `loopback` says whether the core that sets them is one of them; that is so for the whole grid.
        """


class RemoteSemaphore:
    """The counters of other cores."""

    def set(self, value: Any) -> None:
        """Set the counters to `value`."""

    def inc(self, value: Any = 1) -> None:
        """Add `value` to the counter of the one core."""
