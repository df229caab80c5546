"""Processes that are forked: they have all as it is here, and need not run the user's script again.

Each use names `fork`: what Python starts processes with by default, `forkserver` from 3.14 on, plays no part.
"""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess


@cache
def can_fork() -> bool:
    """True if processes can be forked here, and have locks; macOS can fork, but its libraries do not stand it."""
    if sys.platform != "linux":
        return False
    try:
        multiprocessing.get_context("fork").Lock()
    except (ImportError, OSError):
        # Some sandboxes have no semaphores.
        return False
    return True


def forked(
    body: Callable[..., None], parents: Sequence[Connection], *arguments: object
) -> tuple[BaseProcess, Connection]:
    """Start `body(link, parents, *arguments)` in a forked process; the process, and our end of its link.

    `parents` are our ends of the links to other processes. The body gets them with its own, and closes all: as long as
    they are open there, a killed parent leaves no trace in them.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=body, args=(theirs, [ours, *parents], *arguments), daemon=True)
    with warnings.catch_warnings():
        # Python 3.12 warns of other threads, such as BLAS's: a process here waits for none of their locks, or is ended.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    # Now the end of the process ends the link.
    theirs.close()
    return process, ours
