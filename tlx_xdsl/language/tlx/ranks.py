"""Kernels on several GPUs of one host: the memory of peers, and signals between them.

Each GPU is a *rank*. A symmetric tensor has memory of one shape on every rank, and a kernel that takes it can reach all
of them. Every rank runs the whole grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..composite_types import pointer_type
from ..core import constexpr_function
from ..creation import cast
from ..debug import debug_barrier, static_assert
from ..dtypes import int32
from ..marks import builtin, library
from ..memory import atomic_add, atomic_cas, atomic_xchg, load, multiple_of, store

if TYPE_CHECKING:
    from ..arguments import Text, Value
    from ..objects import tensor

    constexpr: TypeAlias = Any
else:
    from ..compile_time import constexpr

__all__ = ["Peers", "peer", "rank", "signal", "wait_signal", "world_size"]


class Peers(NamedTuple):
    """A symmetric tensor as a kernel's argument: the table of its addresses, and what is known when it is compiled."""

    table: Any
    """Pointer to `world + 1` numbers of 64 bits: the address on each rank, then the rank that runs the kernel."""
    world: Any
    """Number of ranks, a constexpr."""
    dtype: Any
    """Element type, a constexpr."""


@builtin("tlx")
def _symmetric() -> Any:
    """The first symmetric tensor among the arguments of the kernel, or of the function that is no part of it."""
    ...


@library()
def world_size(peers: Any = None) -> int:
    """The number of ranks, a compile-time integer: of a symmetric tensor, or of the kernel's first one.

    Example: `gpus = tlx.world_size(peers)`
    """
    if peers is None:
        return _symmetric().world
    return peers.world


@library()
def rank(peers: Any = None) -> tensor:
    """The rank of the GPU that runs the program, an int32 from 0 to `world_size() - 1`.

    It is read from the table of a symmetric tensor, by default the kernel's first one.

    Example: `mine = tlx.rank(peers)`
    """
    if peers is None:
        return rank(_symmetric())
    return cast(load(peers.table + peers.world), int32)


@library()
def peer(peers: Any, rank: Value) -> tensor:
    """Pointer to the first element of a symmetric tensor on `rank`, which is at a multiple of 16 bytes.

    It is as any other pointer: loads, stores and atomic operations reach the other GPU's memory. They order memory
    between GPUs with `scope="sys"` only.

    Example: `theirs = tlx.peer(peers, 1)`
    """
    return multiple_of(cast(load(peers.table + rank), pointer_type(peers.dtype)), 16)


@constexpr_function
def _one_of(value: Any, known: Any) -> bool:
    return value in known


@library()
def signal(
    pad: tensor,
    index: Value,
    value: Value = 1,
    op: constexpr = "add",
    sem: constexpr = "release",
    scope: constexpr = "sys",
) -> None:
    """Signal whoever waits for counter `index` of a pad: all that this task's threads have written comes before it.

    `pad` points to int32 or int64 counters, most often of another rank: `tlx.peer(pads, to)`. `op` is "add", which adds
    `value` (PTX: red.release.sys), or "set", which replaces the counter. What TMA stores must be waited for first, by
    `async_descriptor_store_wait(0, read=False)`.

    Example: `tlx.signal(tlx.peer(pad, 1), 0)`
    """
    static_assert(_one_of(op, ("add", "set")), "'op' must be 'add' or 'set'")
    static_assert(_one_of(sem, ("release", "relaxed", "acq_rel")), "'sem' must be 'release', 'acq_rel' or 'relaxed'")
    debug_barrier()
    if op == "add":
        atomic_add(pad + index, value, sem=sem, scope=scope)
    else:
        atomic_xchg(pad + index, value, sem=sem, scope=scope)


@builtin("tlx")
def _wait_signal(pointer: tensor, value: Value, compare: Text, sem: Text, scope: Text, limit_ns: Any) -> None:
    """Let one thread read a counter until it is reached, or until a time is over."""
    ...


@builtin("tlx")
def _has_tasks() -> bool:
    """True if the kernel has tasks, which would wait for a thread block that leaves."""
    ...


@builtin("tlx")
def _leave() -> None:
    """End the thread block."""
    ...


@library()
def wait_signal(
    pad: tensor,
    index: Value,
    value: Value,
    compare: constexpr = ">=",
    sem: constexpr = "acquire",
    scope: constexpr = "sys",
    limit_ns: constexpr = None,
) -> None:
    """Wait until counter `index` of a pad is at least `value`; what came before the signals is visible then.

    `pad` points to the counters of this rank: `tlx.peer(pads, tlx.rank())`. One thread reads (PTX:
    ld.acquire.sys), then all threads of the task meet. `compare` is ">=" or "==". Counters that only grow need no
    reset: wait for the number of the launch times the signals of one launch.

    After `limit_ns` nanoseconds (PTX: %globaltimer) the program gives up: the first one of its GPU writes 1, `index`,
    `value` and what the counter is into the four counters before the pad, which must be there and zero, and its thread
    block ends (PTX: exit). In a kernel with tasks, which would wait for it, the launch ends with an error instead, and
    without a report (PTX: trap).

    Example: `tlx.wait_signal(tlx.peer(pad, tlx.rank(pad)), 0, 1)`
    """
    _wait_signal(pad + index, value, compare, sem, scope, limit_ns)
    debug_barrier()
    if limit_ns is not None:
        found = atomic_add(pad + index, 0, sem=sem, scope=scope)
        if (found < value) if compare == ">=" else (found != value):
            # With tasks the launch ends with an error, and no one reads memory any more.
            if not _has_tasks() and atomic_cas(pad - 4, 0, 1, sem="relaxed", scope="gpu") == 0:
                store(pad - 3, index)
                store(pad - 2, value)
                store(pad - 1, found)
            _leave()
