"""Kernels that other processes find by their names, and two that they don't."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.runtime.host import autotune as host


def _bump(x, STEP: tl.constexpr = 3):
    tl.store(x, tl.load(x) + STEP)


@tlx_xdsl.jit
def bump(x):
    tl.store(x, tl.load(x) + 3)


@tlx_xdsl.jit(target="cpu")
def bump_on_cpu(x):
    tl.store(x, tl.load(x) + 3)


@tlx_xdsl.heuristics({"STEP": lambda _: 3})
@tlx_xdsl.jit
def computed(x, STEP: tl.constexpr):
    tl.store(x, tl.load(x) + STEP)


@tlx_xdsl.autotune([tlx_xdsl.Config({"STEP": 3})], key=[])
@tlx_xdsl.jit
def tuned(x, STEP: tl.constexpr):
    tl.store(x, tl.load(x) + STEP)


@host.autotune([host.Config({"STEP": 3})], key=[])
@host.heuristics({"MORE": lambda _: 0})
@tlx_xdsl.jit(target="cpu")
def tuned_on_cpu(x, STEP: tl.constexpr, MORE: tl.constexpr):
    tl.store(x, tl.load(x) + STEP + MORE)


class Holder:
    @tlx_xdsl.jit
    def held(x):
        tl.store(x, tl.load(x) + 3)


@ttl.kernel(grid=(1, 1))
def tiles(x):
    pass


renamed = tlx_xdsl.jit(_bump)


def made():
    @tlx_xdsl.jit
    def inner(x):
        tl.store(x, tl.load(x) + 3)

    return inner


def child(kernel, x, queue):
    """Launch the kernel in another process, and send back what it has written."""
    kernel[(1,)](x)
    queue.put((int(x[0]), kernel is bump))
