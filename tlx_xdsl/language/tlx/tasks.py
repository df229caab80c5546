"""Warp specialisation: tasks that run at the same time on warps of their own."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ..arguments import Flag, Int
from ..core import builtin, hosted

__all__ = ["async_task", "async_task_replica_id", "async_tasks"]

_tlx = builtin("tlx")


@_tlx
def async_tasks(
    exclusive: Flag = False,
    no_ending_cluster_sync: Flag = False,
    mbarrier_try_wait_suspend_ns: Int | None = None,
    warp_specialize: Flag = True,
) -> AbstractContextManager[None]:
    """`with tlx.async_tasks():` holds the tasks of a warp-specialised kernel, which run at the same time.

    `exclusive` promises that there are no others in the kernel, `no_ending_cluster_sync` leaves out the wait for the
    cluster after them. `mbarrier_try_wait_suspend_ns` is a hint without an attribute upstream: it is dropped.
    `warp_specialize` may be True only: a kernel without tasks is one without this statement.

    Example:
    ```python
    with tlx.async_tasks():
        with tlx.async_task("default"): tlx.barrier_wait(full[0], 0)
        with tlx.async_task(num_warps=4): tlx.barrier_arrive(full[0])
    ```
    """
    ...


@hosted("tlx")
class async_task:
    """`with tlx.async_task("default"):` runs on the kernel's own warps, any other task on `num_warps` of its own.

    `replicate` makes that many copies of the task; `num_regs` (or `registers`) is the number of registers per
    thread, a multiple of 8; `warp_group_start_id` is the number of the first warp of the first copy. That of the
    default task is not looked at: it begins at warp 0.

    Outside of kernels it holds what it is given, and checks the registers: ValueError where they are no multiple of 8.

    Example:
    ```python
    with tlx.async_tasks():
        with tlx.async_task("default"): tl.store(x, 1.0)
        with tlx.async_task(num_warps=4, num_regs=120): tl.store(x + 1, 2.0)
    ```
    """

    def __init__(
        self,
        task: Any = None,
        num_warps: Int | None = None,
        num_regs: Int | None = None,
        registers: Int | None = None,
        replicate: Int = 1,
        warp_group_start_id: Int | None = None,
    ):
        if num_regs is not None and registers is not None:
            raise ValueError("'num_regs' and 'registers' mean the same: give one of them")
        self.task = task
        self.num_warps = num_warps
        self.num_regs = num_regs if registers is None else registers
        self.replicate = replicate
        self.warp_group_start_id = warp_group_start_id
        if self.num_regs is not None and self.num_regs % 8:
            name = "num_regs" if registers is None else "registers"
            raise ValueError(f"'{name}' must be divisible by 8, found {self.num_regs}")

    def __enter__(self) -> None:
        """Begin the code of the task. Raises RuntimeError outside of a kernel."""
        raise RuntimeError("tlx.async_task has a meaning only inside a kernel compiled by tlx_xdsl.jit")

    def __exit__(self, *error: object) -> None:
        """End the code of the task."""

    @property
    def is_default(self) -> bool:
        """Return whether it is the task on the kernel's own warps."""
        return self.task == "default"


@_tlx
def async_task_replica_id() -> int:
    """The number of this copy of a replicated task, a compile-time integer.

    Example:
    ```python
    with tlx.async_tasks():
        with tlx.async_task("default"): tl.store(x, 1.0)
        with tlx.async_task(num_warps=4, replicate=2): tl.store(x + 1 + tlx.async_task_replica_id(), 2.0)
    ```
    """
    ...
