"""Mistakes in circular buffers, copies and computations of kernels on one core."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.unit.ttl.mistakes.ttl_mistakes import Twin

BF16 = ml_dtypes.bfloat16


def _numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def _tree(leaves: int) -> str:
    """A balanced sum of products: so many values, of which one more is held for each level."""
    level = [f"({'pq'[number % 2]} * {number}.0)" for number in range(leaves)]
    while len(level) > 1:
        level = [f"({a} {'-*'[len(level) % 3 == 1]} {b})" for a, b in zip(level[::2], level[1::2], strict=True)]
    return level[0]


ADD = Twin(
    "add",
    """\
import ttl


@ttl.kernel(grid=(1, 1))
def add(a, b, out):
    rows, columns = a.shape[0] // 32, a.shape[1] // 32
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 2), buffer_factor=2)
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2), buffer_factor=2)

    @ttl.datamovement()
    def read():
        for i in range(rows):
            x = a_cb.reserve()
            ttl.copy(a[i : i + 1, 0:2], x).wait()
            x.push()
            y = b_cb.reserve()
            ttl.copy(b[i : i + 1, 0:2], y).wait()
            y.push()

    @ttl.compute()
    def compute():
        for _ in range(rows):
            p = a_cb.wait()
            q = b_cb.wait()
            o = out_cb.reserve()
            o.store(p + q)
            o.push()
            q.pop()
            p.pop()

    @ttl.datamovement()
    def write():
        for j in range(rows):
            z = out_cb.wait()
            ttl.copy(z, out[j : j + 1, 0:2]).wait()
            z.pop()
""",
    lambda: {"a": _numbers(96, 64), "b": _numbers(96, 64, seed=1), "out": np.full((96, 64), np.nan, np.float32)},
    lambda a, b, out: {"out": a + b},
)

ROWS = Twin(
    "rows",
    """\
import ttl


@ttl.kernel(grid=(1, 1), tiled=False)
def rows(x, out):
    cb = ttl.make_circular_buffer_like(x, shape=(4, 40))

    @ttl.datamovement()
    def read():
        for i in range(0, 16, 4):
            with cb.reserve() as block:
                ttl.copy(x[i : i + 4, :], block).wait()

    @ttl.datamovement()
    def write():
        for j in range(0, 16, 4):
            with cb.wait() as block:
                ttl.copy(block, out[j : j + 4, :]).wait()
""",
    lambda: {"x": _numbers(16, 40), "out": np.full((16, 40), np.nan, np.float32)},
    lambda x, out: {"out": x},
)

PRODUCT = Twin(
    "product",
    """\
import ttl


@ttl.kernel(grid=(1, 1), fp32_dest_acc_en=True)
def product(a, b, bias, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(2, 1))
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2))
    bias_cb = ttl.make_circular_buffer_like(bias, shape=(1, 2))
    sum_cb = ttl.make_circular_buffer_like(out, shape=(2, 2))
    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 2))

    @ttl.datamovement()
    def read():
        for k in range(3):
            with a_cb.reserve() as x, b_cb.reserve() as y:
                ttl.copy(a[0:2, k], x).wait()
                ttl.copy(b[k, 0:2], y).wait()
        with bias_cb.reserve() as row:
            ttl.copy(bias[0, 0:2], row).wait()

    @ttl.compute()
    def compute():
        with sum_cb.reserve() as s:
            for _ in range(3):
                with a_cb.wait() as x, b_cb.wait() as y:
                    s += x @ y
        with sum_cb.wait() as s, bias_cb.wait() as row, out_cb.reserve() as o:
            o.store(s + ttl.math.broadcast(row, o, dims=[0]))

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0:2, 0:2]).wait()
""",
    lambda: {
        "a": _numbers(64, 96),
        "b": _numbers(96, 64),
        "bias": _numbers(1, 64),
        "out": np.zeros((64, 64), np.float32),
    },
    lambda a, b, bias, out: {"out": a @ b + bias},
)

IN_PLACE = Twin(
    "in_place",
    """\
import ttl


@ttl.kernel(grid=(1, 1))
def in_place(x):
    columns = x.shape[1] // 32
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 1), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(x, shape=(1, 1), buffer_factor=2)

    @ttl.datamovement()
    def read():
        for c in range(columns):
            with x_cb.reserve() as block:
                ttl.copy(x[0, c], block).wait()

    @ttl.compute()
    def compute():
        for _ in range(columns):
            with x_cb.wait() as block, out_cb.reserve() as o:
                o.store(block * 2.0)

    @ttl.datamovement()
    def write():
        for c in range(columns):
            with out_cb.wait() as block:
                ttl.copy(block, x[0, c]).wait()
""",
    lambda: {"x": _numbers(32, 160)},
    lambda x: {"x": x * 2},
)

TWO_STEPS = Twin(
    "two_steps",
    """\
import ttl


@ttl.kernel(grid=(1, 1))
def two_steps(a, b, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1), buffer_factor=2)
    b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)

    @ttl.datamovement()
    def read():
        for i in range(4):
            with a_cb.reserve() as x:
                ttl.copy(a[0, i], x).wait()
            with b_cb.reserve() as y:
                ttl.copy(b[0, i], y).wait()

    @ttl.compute()
    def compute():
        for _ in range(4):
            with a_cb.wait() as x, b_cb.wait() as y, out_cb.reserve() as o:
                o.store(x * y)

    @ttl.datamovement()
    def write():
        for i in range(4):
            with out_cb.wait() as o:
                ttl.copy(o, out[0, i]).wait()
""",
    lambda: {"a": _numbers(32, 128), "b": _numbers(32, 128, seed=1), "out": np.zeros((32, 128), np.float32)},
    lambda a, b, out: {"out": a * b},
)

HALVES = Twin(
    "halves",
    """\
import ttl


@ttl.kernel(grid=(1, 1))
def halves(a, h, out, short):
    cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    short_cb = ttl.make_circular_buffer_like(h, shape=(1, 1))

    @ttl.datamovement()
    def read():
        with cb.reserve() as x, short_cb.reserve() as y:
            ttl.copy(a[0, 0], x).wait()
            ttl.copy(h[0, 0], y).wait()

    @ttl.datamovement()
    def write():
        with cb.wait() as x, short_cb.wait() as y:
            ttl.copy(x, out[0, 0]).wait()
            ttl.copy(y, short[0, 0]).wait()
""",
    lambda: {
        "a": _numbers(32, 32), "h": _numbers(32, 32, seed=1).astype(BF16),
        "out": np.zeros((32, 32), np.float32), "short": np.zeros((32, 32), BF16),
    },
    lambda a, h, out, short: {"out": a, "short": h},
)  # fmt: skip

TWINS = (ADD, ROWS, PRODUCT, IN_PLACE, TWO_STEPS, HALVES)

# fmt: off
# ruff: noqa: E501

# --- the steps of circular buffers ------------------------------------------------------------------------------------

add = ADD.mistake
add("short producer", "before", "waits for 3 blocks of 'a_cb', the producer pushes 1",
    "        for i in range(rows):", "        for i in range(1):", at="p = a_cb.wait()")
add("producer of too many", "before", "row of tiles 3 of the block is outside of the tensor",
    "        for i in range(rows):", "        for i in range(rows + 1):", at="ttl.copy(a[i :")
add("consumer of too many", "before", "row of tiles 3 of the block is outside of the tensor",
    "        for j in range(rows):", "        for j in range(rows + 1):", at="ttl.copy(z, out")
add("used after it is popped", "before", "this block is used after it was popped",
    "            p.pop()\n", "", "            o = out_cb.reserve()\n", "            o = out_cb.reserve()\n            p.pop()\n",
    at="o.store(p + q)")
add("popped twice", "before", "this block is used after it was popped",
    "            p.pop()\n", "            p.pop()\n            p.pop()  # again\n", at="p.pop()  # again")
add("pushed twice", "before", "this block is used after it was pushed",
    "            o.push()\n", "            o.push()\n            o.push()  # again\n", at="o.push()  # again")
add("nothing stored", "before", "'out_cb' is pushed, but nothing was stored to it",
    "            o.store(p + q)\n", "", at="o.push()")
add("result not stored", "before", "'out_cb' is pushed, but nothing was stored to it",
    "o.store(p + q)", "p + q", at="o.push()")
add("a second producer", "before", "a circular buffer has one producer, found a second thread",
    "            z = out_cb.wait()\n", "            m = a_cb.reserve()\n            ttl.copy(a[0:1, 0:2], m).wait()\n            m.push()\n            z = out_cb.wait()\n")
add("a second consumer", "before", "a circular buffer has one consumer, found a second thread",
    "            z.pop()\n", "            z.pop()\n            a_cb.wait().pop()\n", at="a_cb.wait().pop()")
add("waited for twice", "before", "this wait would give the same block of 'a_cb' again",
    "            q = b_cb.wait()\n", "            q = b_cb.wait()\n            again = a_cb.wait()\n",
    "            q.pop()\n", "            q.pop()\n            again.pop()\n", at="again = a_cb.wait()")
add("reserved twice", "before", "'a_cb' is pushed, but nothing was copied to it",
    "            x.push()\n", "            again = a_cb.reserve()\n            x.push()\n            again.push()\n", at="again.push()")
add("read where it is reserved", "before", "that was reserved, which is only written",
    "o.store(p + q)", "o.store(p + o)")
add("written after it is pushed", "before", "this block is used after it was pushed",
    "            x.push()\n            y = b_cb.reserve()\n",
    "            x.push()\n            y = b_cb.reserve()\n            ttl.copy(a[i : i + 1, 0:2], x).wait()  # late\n",
    at="# late")
add("no consumer", "before", "the blocks of 'b_cb' are never popped: no thread waits for them",
    "            q = b_cb.wait()\n", "", "o.store(p + q)", "o.store(p)", "            q.pop()\n", "", at="y = b_cb.reserve()")
add("no producer", "before", "consumer waits indefinitely: no thread pushes to 'b_cb'",
    "            y = b_cb.reserve()\n            ttl.copy(b[i : i + 1, 0:2], y).wait()\n            y.push()\n", "",
    at="q = b_cb.wait()")
add("pushed, but not written", "before", "'b_cb' is pushed, but nothing was copied to it",
    "            ttl.copy(b[i : i + 1, 0:2], y).wait()\n", "", at="y.push()")
add("half of it written", "before", "the block has 1x2 tiles of f32, found a piece of 1x1 tile",
    "ttl.copy(b[i : i + 1, 0:2], y).wait()", "ttl.copy(b[i : i + 1, 0:1], y).wait()")
add("left out a push", "remark", "this block of 'a_cb' is reserved, but not pushed",
    "            x.push()\n", "", at="x = a_cb.reserve()")
add("left out a pop", "remark", "this block of 'out_cb' is waited for, but not popped",
    "            z.pop()\n", "", at="z = out_cb.wait()")
add("pushed before the copy is done", "remark", "this copy is not waited for before 'a_cb' is pushed",
    "            ttl.copy(a[i : i + 1, 0:2], x).wait()\n            x.push()\n",
    "            t = ttl.copy(a[i : i + 1, 0:2], x)\n            x.push()\n            t.wait()\n")
add("popped before the write is done", "remark", "this copy is not waited for before 'out_cb' is popped",
    "            ttl.copy(z, out[j : j + 1, 0:2]).wait()\n            z.pop()\n",
    "            t = ttl.copy(z, out[j : j + 1, 0:2])\n            z.pop()\n            t.wait()\n")
add("a read that nothing waits for", "remark", "this copy is not waited for before 'b_cb' is pushed",
    "ttl.copy(b[i : i + 1, 0:2], y).wait()", "ttl.copy(b[i : i + 1, 0:2], y)")
add("a write that nothing waits for", "remark", "this copy is not waited for before 'out_cb' is popped",
    "ttl.copy(z, out[j : j + 1, 0:2]).wait()", "ttl.copy(z, out[j : j + 1, 0:2])")
add("popped too early", "before", "this block is used after it was popped",
    "            o = out_cb.reserve()\n", "            q.pop()\n            o = out_cb.reserve()\n",
    "            q.pop()\n            p.pop()\n", "            p.pop()\n", at="o.store(p + q)")

# --- copies -----------------------------------------------------------------------------------------------------------

add("reads outside of a tensor", "before", "row of tiles 3 of the block is outside of the tensor",
    "a[i : i + 1, 0:2]", "a[i + 1 : i + 2, 0:2]")
add("writes outside of a tensor", "before", "row of tiles 3 of the block is outside of the tensor",
    "out[j : j + 1, 0:2]", "out[j + 1 : j + 2, 0:2]")
add("before the first row", "before", "row of tiles -1 of the block is outside of the tensor",
    "a[i : i + 1, 0:2]", "a[i - 1 : i, 0:2]")
add("rows for columns", "before", "columns of tiles 1 to 2 of the block are outside of the tensor",
    "a[i : i + 1, 0:2]", "a[0:1, i : i + 2]")
add("another shape", "before", "the block has 1x2 tiles of f32, found a piece of 2x1 tiles",
    "b[i : i + 1, 0:2]", "b[0:2, i : i + 1]")
add("from tensor to tensor", "before", "one side is a block of a circular buffer, found a piece of the tensor 'b'",
    "ttl.copy(b[i : i + 1, 0:2], y).wait()", "ttl.copy(b[i : i + 1, 0:2], a[i : i + 1, 0:2]).wait()")
add("from block to block", "before", "one side is a tensor or a pipe, found a block on both",
    "ttl.copy(z, out[j : j + 1, 0:2]).wait()", "ttl.copy(z, z).wait()")
add("a copy of the compute thread", "before", "ttl.copy is for datamovement threads, found it in a compute thread",
    "            o.push()\n", "            ttl.copy(o, out[0:1, 0:2]).wait()\n            o.push()\n")
add("a computation of a thread that moves data", "before", "storing to a block is for compute threads",
    "ttl.copy(b[i : i + 1, 0:2], y).wait()", "y.store(x)")
add("the block of another thread", "before", "name 'o' is not defined",
    "ttl.copy(z, out[j : j + 1, 0:2]).wait()", "ttl.copy(o, out[j : j + 1, 0:2]).wait()")
add("always the same row written", "run", "page 0 of tensor 'out' is written once more, while page 2 never is",
    "out[j : j + 1, 0:2]", "out[0:1, 0:2]")
add("reads into what it has waited for", "before", "writing to a block needs one that was reserved",
    "            z = out_cb.wait()\n", "            z = out_cb.wait()\n            ttl.copy(a[0:1, 0:2], z).wait()\n",
    at="ttl.copy(a[0:1, 0:2], z)")
ROWS.mistake("a part of rows", "before", "the block has 4x40 elements of f32, found a piece of 4x20", "x[i : i + 4, :]", "x[i : i + 4, 0:20]")
ROWS.mistake("too many rows at the end", "before", "rows 13 to 16 of the block are outside of the tensor", "for i in range(0, 16, 4):", "for i in range(1, 17, 4):",
             at="ttl.copy(x[")
ROWS.mistake("rows left out", "warning", "12 pages of 'out' were not written",
             "for i in range(0, 16, 4):", "for i in range(0, 4, 4):",
             "for j in range(0, 16, 4):", "for j in range(0, 4, 4):", at="ttl.copy(block, out[")

HALVES.mistake("another type", "before", "make its buffer like the tensor", "ttl.copy(h[0, 0], y)", "ttl.copy(a[0, 0], y)")
HALVES.mistake("both types in one buffer", "before", "make its buffer like the tensor", "ttl.copy(x, out[0, 0])", "ttl.copy(x, short[0, 0])")

# --- computations -----------------------------------------------------------------------------------------------------

product = PRODUCT.mistake
product("inner dimensions differ", "before", "the block has 2x2 tiles of f32, found a value of 1x1 tile", "s += x @ y", "s += y @ x")
product("no broadcast", "before", "'+' needs two blocks of one shape and type", "ttl.math.broadcast(row, o, dims=[0])", "row", at="o.store(s + row)")
product("broadcast of the other dimension", "before", "needs 2 rows of tiles along dimension 0", "dims=[0]", "dims=[1]")
product("stored in a smaller block", "before", "'+' needs two blocks of one shape and type",
        "    out_cb = ttl.make_circular_buffer_like(out, shape=(2, 2))",
        "    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2))", at="o.store(s")
product("a function of numpy's", "before", "'+' needs a block, found 'abs'", "o.store(s + ", "o.store(abs + ")
product("a function that there is not", "before", "has no 'broadcst', did you mean 'broadcast'?", "ttl.math.broadcast(", "ttl.math.broadcst(")
product("a sum that is taken before it is done", "before", "that was reserved, which is only written",
        "                    s += x @ y\n        with sum_cb.wait() as s, ",
        "                    s += x @ y\n            with out_cb.reserve() as o:\n"
        "                o.store(s)\n        with sum_cb.wait() as s, ", at="                o.store(s)")
product("a block outside of its with", "before", "'out_cb' is pushed, but nothing was stored to it",
        "            o.store(s + ttl.math.broadcast(row, o, dims=[0]))",
        "            pass\n        o.store(s + row)", at="with sum_cb.wait() as s, bias_cb")

# --- resources --------------------------------------------------------------------------------------------------------

add("more than L1", "before", "need 1,671,168 B of a core's memory, there are 1,499,136",
    "a_cb = ttl.make_circular_buffer_like(a, shape=(1, 2), buffer_factor=2)",
    "a_cb = ttl.make_circular_buffer_like(a, shape=(1, 2), buffer_factor=200)")
add("more than 32 buffers", "before", "a core has 32 circular buffers, the kernel makes 34",
    "    @ttl.compute()\n    def compute():\n        for _ in range(rows):\n",
    "    more = [ttl.make_circular_buffer_like(a, shape=(1, 1)) for _ in range(31)]\n\n"
    "    @ttl.compute()\n    def compute():\n"
    "        for cb in more:\n"
    "            with cb.reserve() as m:\n"
    "                m.store(ttl.math.fill(m, 0.0))\n"
    "            with cb.wait() as m:\n"
    "                pass\n"
    "        for _ in range(rows):\n", at="for _ in range(31)")
add("room for no block", "before", "at least 1, found 0",
    "b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2), buffer_factor=2)",
    "b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2), buffer_factor=0)")
add("more registers than there are", "warning", "4 DST registers are too few for this computation",
    "o.store(p + q)", f"o.store(p + q + 0.0 * {_tree(16)})")
add("a loop over a value of the core", "before", "an argument of 'range' must be an integer, found the circular buffer 'a_cb'",
    "        for _ in range(rows):\n            p = ", "        for _ in range(a_cb):\n            p = ")
add("a second compute thread", "before", "a core has one compute thread, 'write' is one more",
    "    @ttl.datamovement()\n    def write():", "    @ttl.compute()\n    def write():", at="def write():")
add("a name that is not there", "before", "name 'r' is not defined", "o.store(p + q)", "o.store(p + r)")

# --- order ------------------------------------------------------------------------------------------------------------

IN_PLACE.mistake("shifted in place", "run", "writes, and nothing orders them",
                 "x[0, c], block)", "x[0, columns - 1 - c], block)")
TWO_STEPS.mistake("all of one buffer first", "remark", "as it is written, deadlock: 'read', 'compute' wait for each other",
                  "            with b_cb.reserve() as y:\n                ttl.copy(b[0, i], y).wait()\n",
                  "        for i in range(4):\n            with b_cb.reserve() as y:\n"
                  "                ttl.copy(b[0, i], y).wait()\n", at="with a_cb.reserve() as x:")
TWO_STEPS.mistake("more than there is room for", "before", "deadlock: 'read', 'compute' wait for each other",
                  "            with b_cb.reserve() as y:\n                ttl.copy(b[0, i], y).wait()\n",
                  "        for i in range(0, 8, 2):\n            with b_cb.reserve() as y:\n"
                  "                ttl.copy(b[0, i // 2], y).wait()\n", at="with a_cb.reserve() as x:")
