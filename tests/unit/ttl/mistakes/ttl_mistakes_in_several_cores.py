"""Mistakes in the work of several cores: shares of tensors, semaphores, pipes, and pages that two threads touch."""

from __future__ import annotations

import numpy as np

from tests.unit.ttl.mistakes.ttl_mistakes import Twin


def _numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


SHARES = Twin(
    "shares",
    """\
import ttl


@ttl.kernel(grid=(3, 2))
def shares(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))
    x, y = ttl.core(dims=2)
    each = 2

    @ttl.datamovement()
    def read():
        for i in range(each):
            with a_cb.reserve() as p, b_cb.reserve() as q:
                ttl.copy(a[y * each + i, x], p).wait()
                ttl.copy(b[0, x], q).wait()

    @ttl.compute()
    def compute():
        for _ in range(each):
            with a_cb.wait() as p, b_cb.wait() as q, out_cb.reserve() as o:
                o.store(p * q)

    @ttl.datamovement()
    def write():
        for j in range(each):
            with out_cb.wait() as o:
                ttl.copy(o, out[y * each + j, x]).wait()
""",
    # Only the first row of `b` is used, by all cores.
    lambda: {
        "a": _numbers(128, 96), "b": np.repeat(_numbers(64, 96)[:1], 64, 0), "out": np.full((128, 96), np.nan, "f4")
    },
    lambda a, b, out: {"out": a * b[:1]},
)  # fmt: skip

IN_TURNS = Twin(
    "in_turns",
    """\
import ttl


@ttl.kernel(grid=(2, 1))
def in_turns(a, out):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    done = ttl.Semaphore(0)
    core = ttl.core(dims=1)

    @ttl.datamovement()
    def read():
        with cb.reserve() as block:
            ttl.copy(a[0, core], block).wait()

    @ttl.datamovement()
    def write():
        if core == 0:
            with cb.wait() as block:
                ttl.copy(block, out[0, 0]).wait()  # first
            done.get_remote((1, 0)).inc(1)
        if core == 1:
            done.wait_ge(1)
            with cb.wait() as block:
                ttl.copy(block, out[0, 0]).wait()  # second
""",
    lambda: {"a": _numbers(32, 64), "out": np.zeros((32, 32), np.float32)},
    lambda a, out: {"out": a[:, 32:]},
)

RELAY = Twin(
    "relay",
    """\
import ttl


@ttl.kernel(grid=(2, 1))
def relay(a, middle, out):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
    written = ttl.Semaphore(0)
    taken = ttl.Semaphore(0)
    core = ttl.core(dims=1)

    @ttl.datamovement()
    def read():
        for i in range(4):
            if core == 0:
                with cb.reserve() as block:
                    ttl.copy(a[i, 0], block).wait()
            if core == 1:
                written.wait_ge(i + 1)
                with cb.reserve() as block:
                    ttl.copy(middle[0, 0], block).wait()
                taken.get_remote((0, 0)).inc(1)

    @ttl.datamovement()
    def write():
        for i in range(4):
            if core == 0:
                taken.wait_ge(i)
                with cb.wait() as block:
                    ttl.copy(block, middle[0, 0]).wait()
                written.get_remote((1, 0)).inc(1)
            if core == 1:
                with cb.wait() as block:
                    ttl.copy(block, out[i, 0]).wait()
        if core == 0:
            taken.wait_ge(4)
""",
    lambda: {"a": _numbers(128, 32), "middle": np.zeros((32, 32), np.float32), "out": np.zeros((128, 32), np.float32)},
    lambda a, middle, out: {"out": a, "middle": a[96:]},
)

GATHER = Twin(
    "gather",
    """\
import ttl


@ttl.kernel(grid=(3, 1))
def gather(a, middle, out):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    done = ttl.Semaphore(0)
    core = ttl.core(dims=1)

    @ttl.datamovement()
    def read():
        if core < 2:
            with cb.reserve() as block:
                ttl.copy(a[0, core], block).wait()
        else:
            done.wait_ge(2)
            for i in range(2):
                with cb.reserve() as block:
                    ttl.copy(middle[0, i], block).wait()

    @ttl.datamovement()
    def write():
        if core < 2:
            with cb.wait() as block:
                ttl.copy(block, middle[0, core]).wait()
            done.get_remote((2, 0)).inc(1)
        else:
            for i in range(2):
                with cb.wait() as block:
                    ttl.copy(block, out[0, i]).wait()
""",
    lambda: {"a": _numbers(32, 64), "middle": np.zeros((32, 64), np.float32), "out": np.zeros((32, 64), np.float32)},
    lambda a, middle, out: {"out": a, "middle": a},
)

MULTICAST = Twin(
    "multicast",
    """\
import ttl


@ttl.kernel(grid=(3, 1))
def multicast(x, w, out):
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 1))
    w_cb = ttl.make_circular_buffer_like(w, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst_range=(slice(1, 3), 0))])
    core, _ = ttl.core(dims=2)

    @ttl.datamovement()
    def read():
        for c in range(2):
            with w_cb.reserve() as block:
                if core == 0:
                    ttl.copy(w[0, c], block).wait()
                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
            with x_cb.reserve() as own:
                ttl.copy(x[core, c], own).wait()

    @ttl.compute()
    def compute():
        for _ in range(2):
            with x_cb.wait() as own, w_cb.wait() as block, out_cb.reserve() as o:
                o.store(own * block)

    @ttl.datamovement()
    def write():
        for c in range(2):
            with out_cb.wait() as o:
                ttl.copy(o, out[core, c]).wait()
""",
    lambda: {"x": _numbers(96, 64), "w": _numbers(32, 64, seed=1), "out": np.full((96, 64), np.nan, np.float32)},
    lambda x, w, out: {"out": x * np.tile(w, (3, 1))},
)

EXCHANGE = Twin(
    "exchange",
    """\
import ttl


@ttl.kernel(grid=(2, 1))
def exchange(a, out):
    own_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    new_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    right = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))])
    left = ttl.PipeNet([ttl.Pipe(src=(1, 0), dst=(0, 0))])
    core, _ = ttl.core(dims=2)

    @ttl.datamovement()
    def read():
        with own_cb.reserve() as own:
            ttl.copy(a[0, core], own).wait()
            right.if_src(lambda pipe: ttl.copy(own, pipe).wait())
            right.if_dst(lambda pipe: ttl.copy(pipe, own).wait())

    @ttl.datamovement()
    def write():
        with own_cb.wait() as own:
            ttl.copy(own, out[0, core]).wait()
""",
    lambda: {"a": _numbers(32, 64), "out": np.zeros((32, 64), np.float32)},
    lambda a, out: {"out": np.tile(a[:, :32], (1, 2))},
)

SHARDED = Twin(
    "sharded",
    """\
import ttl

SHARDS = ttl.tensor((64, 128), layout=ttl.sharded(grid=(2, 2), tiles_per_shard=(1, 2)))


@ttl.kernel(grid=(2, 2))
def sharded(x: SHARDS, out: SHARDS):
    cb = ttl.make_circular_buffer_like(x, shape=(1, 2))
    core = ttl.core(dims=1)

    @ttl.datamovement()
    def read():
        with cb.reserve() as block:
            ttl.copy(x[core], block).wait()

    @ttl.datamovement()
    def write():
        with cb.wait() as block:
            ttl.copy(block, out[core]).wait()
""",
    lambda: {"x": _numbers(64, 128), "out": np.zeros((64, 128), np.float32)},
    lambda x, out: {"out": x},
)

TWINS = (SHARES, IN_TURNS, RELAY, GATHER, MULTICAST, EXCHANGE, SHARDED)

# fmt: off
# ruff: noqa: E501

# --- shares of tensors ------------------------------------------------------------------------------------------------

add = SHARES.mistake
add("all cores write the same rows", "run", "writes, and nothing orders them", "out[y * each + j, x]", "out[j, x]")
add("one row too many for each core", "run", "writes, and nothing orders them", "a[y * each + i, x]", "a[y + i, x]", "out[y * each + j, x]", "out[y + j, x]", at="out[y + j, x]")
add("columns for rows", "before", "row of tiles 4 of the block is outside of the tensor, which has 4 rows of tiles on core (2, 0)", "a[y * each + i, x]", "a[x * each + i, y]")
add("a grid larger than the tensor", "before", "which has 4 rows of tiles on core (0, 2)", "@ttl.kernel(grid=(3, 2))", "@ttl.kernel(grid=(3, 3))", at="ttl.copy(a[")
add("rows that no core has", "warning", "6 pages of 'out' were not written", "each = 2", "each = 1", at="ttl.copy(o, out[")
add("as many blocks on one core only", "before", "the producer pushes 1 on core (0, 1)", "        for i in range(each):", "        for i in range(each - y):", at="with a_cb.wait() as p")
add("a core that does not write", "before", "2 blocks of 'out_cb' are pushed, the consumer pops 0 on core (0, 1)", "        for j in range(each):", "        for j in range(each * (1 - y)):", at="with a_cb.wait() as p")
add("a row that is read by all and written by one", "run", "reads page 0 of tensor 'b' (tile row 0, column 0), which thread 'write' of core (0, 0) writes, and",
    "ttl.copy(o, out[y * each + j, x]).wait()",
    "ttl.copy(o, out[y * each + j, x]).wait()\n                if y == 0 and j == 1:\n                    ttl.copy(o, b[0, x]).wait()", at="ttl.copy(b[0, x], q)")

add("a race whose value is not used", "run", "and nothing orders them",
    "    x, y = ttl.core(dims=2)\n", "    x, y = ttl.core(dims=2)\n    spare = ttl.make_circular_buffer_like(a, shape=(1, 1))\n",
    "            with a_cb.reserve() as p, b_cb", "            with spare.reserve() as s:\n                ttl.copy(out[2 * (1 - y) + i, x], s).wait()\n            with a_cb.reserve() as p, b_cb",
    "            with a_cb.wait() as p, b_cb", "            with spare.wait() as s:\n                pass\n            with a_cb.wait() as p, b_cb", at="ttl.copy(out[2")

# --- semaphores -------------------------------------------------------------------------------------------------------

add = IN_TURNS.mistake
add("no semaphore between two writes", "run", "writes, and nothing orders them", "            done.get_remote((1, 0)).inc(1)\n", "", "            done.wait_ge(1)\n", "", at="# second")
add("never set", "before", "deadlock: 'write' waits for a semaphore for ever on core (1, 0)", "            done.get_remote((1, 0)).inc(1)\n", "", at="done.wait_ge(1)")
add("never waited for", "run", "and nothing orders them", "            done.wait_ge(1)\n", "", at="# second")
add("waits for more than comes", "before", "deadlock: 'write' waits for a semaphore for ever on core (1, 0)", "done.wait_ge(1)", "done.wait_ge(2)")
add("waits for another number", "before", "deadlock: 'write' waits for a semaphore for ever on core (1, 0)", ".inc(1)", ".inc(2)", "done.wait_ge(1)", "done.wait_eq(1)", at="done.wait_eq(1)")
add("the wrong core", "before", "deadlock: 'write' waits for a semaphore for ever on core (1, 0)", "done.get_remote((1, 0)).inc(1)", "done.get_remote((0, 0)).inc(1)", at="done.wait_ge(1)")
add("a core that there is not", "before", "'core' of a semaphore is outside of the grid: x is from 0 to 1, found 2", "done.get_remote((1, 0)).inc(1)", "done.get_remote((2, 0)).inc(1)")
add("waits after its write", "run", "writes, and nothing orders them", "            done.wait_ge(1)\n            with cb.wait() as block:\n                ttl.copy(block, out[0, 0]).wait()  # second\n",
    "            with cb.wait() as block:\n                ttl.copy(block, out[0, 0]).wait()  # second\n            done.wait_ge(1)\n", at="# second")
add("signals before its write", "run", "writes, and nothing orders them", "            with cb.wait() as block:\n                ttl.copy(block, out[0, 0]).wait()  # first\n            done.get_remote((1, 0)).inc(1)\n",
    "            done.get_remote((1, 0)).inc(1)\n            with cb.wait() as block:\n                ttl.copy(block, out[0, 0]).wait()  # first\n", at="# second")
add("signalled by a thread that does not write", "run", "writes, and nothing orders them",
    "            done.get_remote((1, 0)).inc(1)\n", "", "            ttl.copy(a[0, core], block).wait()\n", "            ttl.copy(a[0, core], block).wait()\n        if core == 0:\n            done.get_remote((1, 0)).inc(1)\n", at="# second")
add("both wait for the other", "before", "deadlock: 'write' waits for a semaphore for ever on core (0, 0)", "            with cb.wait() as block:\n                ttl.copy(block, out[0, 0]).wait()  # first\n            done.get_remote((1, 0)).inc(1)\n        if core == 1:\n            done.wait_ge(1)\n",
    "            done.wait_ge(1)  # mine\n            with cb.wait() as block:\n                ttl.copy(block, out[0, 0]).wait()  # first\n            done.get_remote((1, 0)).inc(1)\n        if core == 1:\n            done.wait_ge(1)\n            done.get_remote((0, 0)).inc(1)\n", at="# mine")
add("a signal before the write is done", "remark", "this copy is not waited for before", "                ttl.copy(block, out[0, 0]).wait()  # first\n            done.get", "                t = ttl.copy(block, out[0, 0])\n            done.get", at="t = ttl.copy")

add = RELAY.mistake
add("reads what may not be written yet", "run", "reads page 0 of tensor 'middle' (tile row 0, column 0), which thread 'write' of core (0, 0) writes, and", "                written.wait_ge(i + 1)\n", "", "                written.get_remote((1, 0)).inc(1)\n", "", at="ttl.copy(middle[0, 0], block)")
add("waits for one write too few", "run", "reads page 0 of tensor 'middle' (tile row 0, column 0), which thread 'write' of core (0, 0) writes, and", "written.wait_ge(i + 1)", "written.wait_ge(i)", at="ttl.copy(middle[0, 0], block)")
add("overwrites what may not be read yet", "run", "which thread 'read' of core (1, 0) reads, and", "                taken.wait_ge(i)\n", "", "            taken.wait_ge(4)", "            taken.wait_ge(4)", at="ttl.copy(block, middle[0, 0])")
add("says that it has read too early", "run", "reads page 0 of tensor 'middle' (tile row 0, column 0), which thread 'write' of core (0, 0) writes, and", "                with cb.reserve() as block:\n                    ttl.copy(middle[0, 0], block).wait()\n                taken.get_remote((0, 0)).inc(1)\n",
    "                taken.get_remote((0, 0)).inc(1)\n                with cb.reserve() as block:\n                    ttl.copy(middle[0, 0], block).wait()\n", at="ttl.copy(middle[0, 0], block)")
add("resets what may have been counted", "check", "over an arrival that was not waited for: it is lost", "            if core == 0:\n                with cb.reserve() as block:\n", "            if core == 0:\n                if i == 1:\n                    taken.set(0)\n                with cb.reserve() as block:\n", at="taken.set(0)")
add("leaves a signal over", "run", "but no thread there waits for it afterwards", "        if core == 0:\n            taken.wait_ge(4)\n", "", at="taken.get_remote")

add = GATHER.mistake
add("waits for one of two", "run", "reads page 1 of tensor 'middle' (tile row 0, column 1)", "done.wait_ge(2)", "done.wait_ge(1)", at="ttl.copy(middle[0, i], block)")
add("resets between two arrivals", "before", "waits for a semaphore for ever on core (2, 0)", "            done.wait_ge(2)\n", "            done.wait_ge(1)\n            done.set(0)\n            done.wait_ge(1)  # again\n", at="# again")
add("waits for a number that is passed over", "before", "waits for a semaphore for ever on core (2, 0)", "            done.wait_ge(2)\n", "            done.wait_eq(1)\n            done.wait_eq(2)\n", at="done.wait_eq(1)")
add("waits again for what it was", "run", "which it was when it last waited: reset it before", "            done.wait_ge(2)\n", "            done.wait_ge(2)\n            done.wait_ge(2)  # again\n", at="# again")
add("counts from zero again", "before", "waits for a semaphore for ever on core (2, 0)", "            done.wait_ge(2)\n", "            done.wait_ge(2)\n            done.set(0)\n            done.wait_ge(2)  # again\n", at="# again")
add("adds for two", "run", "reads page 1 of tensor 'middle' (tile row 0, column 1)", "done.get_remote((2, 0)).inc(1)", "done.get_remote((2, 0)).inc(2)", at="ttl.copy(middle[0, i], block)")

# --- pipes ------------------------------------------------------------------------------------------------------------

add = MULTICAST.mistake
add("no receiver", "before", "nothing receives what is sent through the pipe", "                net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())\n", "", at="net.if_src(")
add("no sender", "before", "nothing is sent, but a block is received through the pipe", "                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())\n", "", at="net.if_dst(")
add("a pipe out of the grid", "before", "'dst_range' of a pipe is outside of the grid: x is from 0 to 2, found 1 to 3", "slice(1, 3)", "slice(1, 4)")
add("a receiver that is left out", "run", "which was not written", "slice(1, 3)", "slice(1, 2)", at="with w_cb.reserve() as block")
add("sends what it has not read", "before", "reading a block needs one that was waited for", "                if core == 0:\n                    ttl.copy(w[0, c], block).wait()\n", "", at="net.if_src(")
add("sends more often than is received", "before", "4 blocks are sent through the pipe, core (1, 0) receives 2", "                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())\n", "                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())\n                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())  # again\n", at="net.if_dst(")
add("sends what nothing waits for", "remark", "this copy is not waited for", "ttl.copy(block, pipe).wait()", "ttl.copy(block, pipe)")
add("sends before it has read", "before", "reading a block needs one that was waited for", "                if core == 0:\n                    ttl.copy(w[0, c], block).wait()\n                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())\n",
    "                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())\n                if core == 0:\n                    ttl.copy(w[0, c], block).wait()\n", at="net.if_src(")
EXCHANGE.mistake("both send before they receive", "before", "deadlock: 'read' waits for a semaphore for ever on core (0, 0)",
    "            right.if_dst(lambda pipe: ttl.copy(pipe, own).wait())\n",
    "            left.if_src(lambda pipe: ttl.copy(own, pipe).wait())\n            left.if_dst(lambda pipe: ttl.copy(pipe, own).wait())\n            right.if_dst(lambda pipe: ttl.copy(pipe, own).wait())\n", at="right.if_src(")
EXCHANGE.mistake("received where it is not read", "warning", "none of which was read",
    "            right.if_src(lambda pipe: ttl.copy(own, pipe).wait())\n            right.if_dst(lambda pipe: ttl.copy(pipe, own).wait())\n",
    "            right.if_src(lambda pipe: ttl.copy(own, pipe).wait())\n        with new_cb.reserve() as new:\n            ttl.copy(a[0, core], new).wait()\n            right.if_dst(lambda pipe: ttl.copy(pipe, new).wait())\n",
    "    def write():\n", "    def write():\n        with new_cb.wait() as new:\n            pass\n", at="with new_cb.wait() as new")

# --- shards -----------------------------------------------------------------------------------------------------------

SHARDED.mistake("a shard that there is not", "before", "shard 4 is outside of the tensor, which has 4 shards on core (1, 1)", "ttl.copy(x[core], block)", "ttl.copy(x[core + 1], block)")
SHARDED.mistake("all cores the same shard", "run", "writes, and nothing orders them", "ttl.copy(block, out[core])", "ttl.copy(block, out[0])")
SHARDED.mistake("a block that is no shard", "before", "the block has 1x1 tile of f32, found a piece of 1x2 tiles", "shape=(1, 2)", "shape=(1, 1)", at="ttl.copy(x[core]")
