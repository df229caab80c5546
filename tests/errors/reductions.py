"""Reductions, scans and matrix products."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Reductions and matrix products",
    "Operations over the elements of blocks.",
    (
        Entry(
            "An axis that the block does not have",
            """
@tlx_xdsl.jit
def kernel(x):
    tl.store(x, tl.sum(tl.arange(0, 64), axis=1))  # error
""",
            "Axes count from 0.",
        ),
        Entry(
            "A reduction of a scalar",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, tl.sort(n))  # error
""",
            "There is nothing to go through: a scalar has no axis.",
        ),
        Entry(
            "A function that does not combine",
            """
@tlx_xdsl.jit
def first(a, b, c):
    return a

@tlx_xdsl.jit
def kernel(x):
    tl.store(x, tl.reduce(tl.arange(0, 64), 0, first))  # error
""",
            "The function takes two values (twice as many as there are inputs) and returns one.",
        ),
        Entry(
            "A matrix product of vectors",
            """
@tlx_xdsl.jit
def kernel(x):
    v = tl.zeros([64], tl.float16)
    tl.store(x, tl.dot(v, v))  # error
""",
            "Matrices have two dimensions, or three with a batch. For vectors: `tl.sum(v * v, 0)`.",
        ),
        Entry(
            "Matrices that do not fit together",
            """
@tlx_xdsl.jit
def kernel(x):
    a = tl.zeros([64, 32], tl.float16)
    b = tl.zeros([64, 32], tl.float16)
    tl.store(x, tl.sum(tl.sum(tl.dot(a, b), 0), 0))  # error
""",
            "The columns of the first are the rows of the second; here `b.T` was meant.",
        ),
        Entry(
            "A matrix product for another GPU",
            """
@tlx_xdsl.jit
def kernel(x):
    a = tlx.local_alloc((128, 64), tl.float16, 1)
    b = tlx.local_alloc((64, 128), tl.float16, 1)
    acc = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)  # error
    tlx.async_dot(a[0], b[0], acc[0])
""",
            "Tensor memory and tcgen05 exist on Blackwell (`--target sm_100a`). On Hopper the accumulator is a block: "
            "`acc = tlx.async_dot(a[0], b[0], acc)`.",
        ),
    ),
)
