"""Warp specialisation: tasks that run at the same time on warps of their own."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.core import builtin

__all__ = ["async_task", "async_task_replica_id", "async_tasks"]

_tlx = builtin("tlx")


@_tlx
def async_tasks(
    exclusive: bool = False,
    no_ending_cluster_sync: bool = False,
    mbarrier_try_wait_suspend_ns: int | None = None,
    warp_specialize: bool = True,
) -> Any:
    """`with tlx.async_tasks():` holds the tasks of a warp-specialised kernel, which run at the same time.

    `exclusive` promises that there are no others in the kernel, `no_ending_cluster_sync` leaves out the wait for the
    cluster after them. `mbarrier_try_wait_suspend_ns` is a hint without an attribute upstream: it is dropped.
    `warp_specialize` may be True only: a kernel without tasks is one without this statement.
    """


@_tlx
def async_task(
    task: Any = None,
    num_warps: int | None = None,
    num_regs: int | None = None,
    registers: int | None = None,
    replicate: int = 1,
    warp_group_start_id: int | None = None,
) -> Any:
    """`with tlx.async_task("default"):` runs on the kernel's own warps, any other task on `num_warps` of its own.

    `replicate` makes that many copies of the task; `num_regs` (or `registers`) is the number of registers per
    thread, a multiple of 8; `warp_group_start_id` is the number of the first warp of the first copy.
    """


@_tlx
def async_task_replica_id() -> Any:
    """The number of this copy of a replicated task, a compile-time integer."""
