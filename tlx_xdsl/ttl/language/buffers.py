"""Circular buffers, by which the threads of a core hand blocks to each other, transfers of blocks, pipes, semaphores.

A block is a rectangle of tiles, or of single elements for tensors that have no tiles. Its shape is (rows, columns).
"""

from __future__ import annotations

from typing import Any

from .kernel import builtin, kernel_object

__all__ = [
    "Block",
    "CircularBuffer",
    "GroupTransfer",
    "Pipe",
    "PipeNet",
    "RemoteSemaphore",
    "Semaphore",
    "Transfer",
    "copy",
    "make_circular_buffer_like",
    "make_dataflow_buffer_like",
    "make_dfb",
]


class Block:
    """A block that a thread has reserved to write it, or waited for to read it.

    There are no instances outside of kernels: the class documents what kernels can do with a block. In a `with`, it is
    given back at the end: `with cb.wait() as a, out.reserve() as o:`.

    A block of tiles that was waited for is an operand of `+`, `-`, `*`, `/`, `@` and of `ttl.math`.
    """

    shape: tuple[int, int]
    """Rows and columns, in tiles or elements."""

    def store(self, value: Any, acc: bool = False) -> None:
        """Write `value`, a block of the same shape, to this reserved block; with `acc`, add it.

        The first addition to a reservation that nothing was stored to stores. Compute threads only.
        """

    def push(self) -> None:
        """Hand this reserved block to the thread that waits for it."""

    def pop(self) -> None:
        """Give the place of this block, which has been read, back to the thread that writes."""


@kernel_object
class CircularBuffer:
    """A queue of blocks in the memory of each core: one thread reserves and pushes, one waits and pops.

    `shape` is that of a block, in tiles, or in elements where there are no tiles. `buffer_factor` is the number of
    blocks for which there is room.
    """

    shape: tuple[int, int]
    """Rows and columns of a block, in tiles or elements."""

    def __init__(
        self,
        like: Any = None,
        shape: Any = (1, 1),
        buffer_factor: Any = 2,
        *,
        element: Any = None,
        dtype: Any = None,
        tiled: Any = True,
        block_count: Any = None,
    ) -> None:
        """Make a buffer like that of `make_circular_buffer_like(like, shape, buffer_factor)`.

        Without a tensor `like`, it is one of tiles of `dtype`, f32 if nothing is said, or of single elements if it is
        not `tiled`. `element` is the same as `dtype`, `block_count` the same as `buffer_factor`.

        Raises CompilationError in a kernel for a shape that is not two positive integers, and for no room.
        """

    def reserve(self, blocks: Any = None) -> Any:
        """Wait until there is room for a block, and give it; the thread writes it and pushes."""

    def wait(self, blocks: Any = None) -> Any:
        """Wait until a block was pushed, and give it; the thread reads it and pops."""

    def push(self, blocks: Any = None) -> None:
        """Hand the reserved block to the thread that waits for it."""

    def pop(self, blocks: Any = None) -> None:
        """Give the place of the block that was waited for back to the thread that writes."""


@builtin()
def make_circular_buffer_like(like: Any, shape: Any = (1, 1), buffer_factor: Any = 2) -> Any:
    """A circular buffer for blocks of `shape` of the tensor `like`: in tiles, or in elements if it has none.

    `buffer_factor` is the number of blocks for which there is room: with 2, one is filled while the other is read.
    """


@builtin()
def make_dataflow_buffer_like(like: Any, shape: Any = (1, 1), block_count: Any = 2) -> Any:
    """The later spelling of `make_circular_buffer_like`; `block_count` is its `buffer_factor`."""


@builtin()
def make_dfb(dtype: Any, shape: Any, block_count: Any = 2, tile: Any = (32, 32)) -> Any:
    """A circular buffer for blocks of `shape` tiles of `dtype`, such as `"bf16"`."""


class Transfer:
    """A transfer that was begun."""

    def wait(self) -> None:
        """Wait until the transfer is done: a block that is read is there, one that is written may be given back."""


@builtin()
def copy(src: Any, dst: Any) -> Any:
    """Begin to copy between a block and a piece of a tensor, or a pipe; data movement threads only.

    The piece of a tensor of tiles is `t[r0:r1, c0:c1]`, in tiles and of the block's shape, or `t[r, c]`, one tile. Of
    a sharded tensor, `t[s]` is shard `s`, a block of its shape. Of an interleaved tensor, `t[r0:r1, :]` are whole rows.

    The result is a `Transfer`. Where the kernel does not wait for it, the compiler does, before the block is used.
    """


@kernel_object
class GroupTransfer:
    """Transfers that are waited for together: `group.add(ttl.copy(...))` for each, then `group.wait_all()`."""

    def __init__(self) -> None:
        """Begin with no transfer."""

    def add(self, xf: Any) -> None:
        """Add a transfer that was begun, before `wait_all`."""

    def wait_all(self) -> None:
        """Wait until all of them are done, once."""


# Communication between cores: pipes carry blocks, semaphores count. Coordinates of cores are (x, y). A range has a
# slice for each coordinate that varies: `(slice(1, 4), 0)` are the cores 1 to 3 of row 0; a slice without bounds is the
# whole grid in that direction.


@kernel_object
class Pipe:
    """A way for blocks from the core `src` to the core `dst`, or to all of the cores `dst_range`.

    `ttl.copy(block, pipe)` sends on the source, `ttl.copy(pipe, block)` receives on each destination. The blocks on
    both sides are of circular buffers of the same type, or of the same one.
    """

    src: tuple[int, int]
    dst: Any
    """The receiver, or the first and the last one."""
    destination_count: int
    """The number of receivers."""

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

    def is_src(self) -> Any:
        """Return whether a pipe begins on the core."""

    def is_dst(self) -> Any:
        """Return whether a pipe ends on the core."""

    def is_active(self) -> Any:
        """Return whether a pipe begins or ends on the core."""


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
