"""Loads, stores, atomics and descriptors."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Memory",
    "Pointers are scalars or blocks; what is loaded or stored through them has their shape.",
    (
        Entry(
            "A load through a number",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, tl.load(n))  # error
""",
            "Add the offset to a pointer: `tl.load(x + n)`. If the argument should be one, its type starts with `*`.",
        ),
        Entry(
            "A block stored to one place",
            """
@tlx_xdsl.jit
def kernel(x):
    tl.store(x, tl.zeros([64], tl.float32))  # error
""",
            "Each element needs an address: `tl.store(x + tl.arange(0, 64), ...)`.",
        ),
        Entry(
            "A mask of another shape",
            """
@tlx_xdsl.jit
def kernel(x, n):
    i = tl.arange(0, 64)
    mask = tl.arange(0, 32) < n
    tl.store(x + i, 0.0, mask=mask)  # error
""",
            "Compute the mask from the offsets that it goes with: `i < n`.",
        ),
        Entry(
            "other without a mask",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, tl.load(x + n, other=0.0))  # error
""",
            "`other` is what masked elements get; without a mask there are none.",
        ),
        Entry(
            "An option that does not exist",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, tl.load(x + n, cache_modifier=".xy"))  # error
""",
            "The message lists what is possible.",
        ),
        Entry(
            "An atomic without a memory order that exists",
            """
@tlx_xdsl.jit
def kernel(x):
    tl.atomic_add(x, 1.0, sem="seq_cst")  # error
""",
            "The GPU's orders are those of the PTX memory model; `acq_rel` is the strongest and the default.",
        ),
        Entry(
            "Offsets that do not match a descriptor",
            """
@tlx_xdsl.jit
def kernel(tiles, n):
    tiles.store([0, 0], tiles.load([n]))  # error
""",
            "One offset, in elements, for each dimension of the block.",
        ),
        Entry(
            "A descriptor block that is no block",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tiles = tl.make_tensor_descriptor(x, [n, n], [n, 1], [64, n])  # error
    tiles.store([0, 0], tl.zeros([64, 64], tl.float32))
""",
            "The size of the tensor may be known at run time, that of a block may not.",
        ),
    ),
)
