"""A task with few registers prints."""

import re

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def prints(x):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            pass
        with tlx.async_task(num_warps=4, num_regs=24):
            tl.device_print("x", tl.sum(tl.load(x + tl.arange(0, 128)), 0))


def run(**options):
    """Print zero."""
    tlx_xdsl.interpret(prints, 1, np.zeros(128, np.float32), **options)


def shows(ptx: str) -> bool:
    """Return whether the task has fewer registers than the driver needs to print."""
    return any(int(number) < 32 for number in re.findall(r"setmaxnreg\.dec\S*\s+(\d+)", ptx))
