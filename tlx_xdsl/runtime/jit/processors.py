"""The processors that this process may use, whatever its own thread is bound to.

OpenMP, which torch brings along, may bind the thread that uses it to one processor (OMP_PROC_BIND): a mask of that
thread alone, which forked processes would inherit.
"""

from __future__ import annotations

import contextlib
import os
from math import ceil
from pathlib import Path

_TASKS = Path("/proc/self/task")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""Microseconds of all processors together that the process gets in a period, and the period (cgroup v2)."""


def processors() -> set[int]:
    """The processors that any thread of this process may run on."""
    found = set(os.sched_getaffinity(0))
    with contextlib.suppress(OSError):
        for task in _TASKS.iterdir():
            # A thread may end meanwhile.
            with contextlib.suppress(OSError, ValueError):
                found |= os.sched_getaffinity(int(task.name))
    return found


def processor_count() -> int:
    """How many processors can work for this process at a time: no more than its container gets time for."""
    count = len(processors())
    with contextlib.suppress(OSError, ValueError):
        quota, period = _QUOTA.read_text().split()
        if quota != "max":
            count = min(count, ceil(int(quota) / int(period)))
    return max(1, count)


def use_all(wanted: set[int]) -> None:
    """Let this thread run on all of these processors."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, wanted)
