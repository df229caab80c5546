"""Buffers that share memory."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Storage aliasing",
    "A `tlx.storage_alias_spec` names memory that several allocations share; a `tlx.reuse_group` tree says how.",
    (
        Entry(
            "A group of nothing",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec()
    spec.set_buffer_overlap(tlx.reuse_group())  # error
""",
            "List the buffers and groups that share memory.",
        ),
        Entry(
            "Something else in a group",
            """
@tlx_xdsl.jit
def kernel(n):
    spec = tlx.storage_alias_spec()
    a = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)
    spec.set_buffer_overlap(tlx.reuse_group(a, n))  # error
""",
            "Members are what `tlx.local_alloc(..., reuse=spec)` made, and other groups.",
        ),
        Entry(
            "A buffer of another region",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec()
    other = tlx.storage_alias_spec()
    a = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)
    b = tlx.local_alloc((64, 64), tl.float16, 2, reuse=other)
    spec.set_buffer_overlap(tlx.reuse_group(a, b))  # error
""",
            "All buffers of a tree are allocated with the spec on which the tree is set.",
        ),
        Entry(
            "A region that is too small",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec(buffer_size_bytes=4096)
    a = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)
    b = tlx.local_alloc((64, 64), tl.float32, 2, reuse=spec)
    spec.set_buffer_overlap(tlx.reuse_group(a, b))  # error
    tlx.local_store(b[0], tl.zeros([64, 64], tl.float32))
    tlx.local_store(a[0], tl.zeros([64, 64], tl.float16))
""",
            "Leave `buffer_size_bytes` out to get the smallest size that works.",
        ),
        Entry(
            "A size that is not positive",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec(buffer_size_bytes=0)  # error
""",
            "Sizes are in bytes, of the whole region.",
        ),
        Entry(
            "Two trees for one region",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec()
    a = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)
    b = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)
    spec.set_buffer_overlap(tlx.reuse_group(a, b))
    spec.set_buffer_overlap(tlx.reuse_group(b, a))  # error
""",
            "Put everything that is to be said into one tree; groups nest.",
        ),
        Entry(
            "Two trees that are live together",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec()
    a = tlx.local_alloc((64,), tl.float32, 2, reuse=spec)
    b = tlx.local_alloc((64,), tl.float32, 2, reuse=spec)
    spec.set_buffer_overlap(tlx.reuse_group(a))
    spec.set_buffer_overlap(tlx.reuse_group(b))  # error
    tlx.local_store(a[0], tl.zeros([64], tl.float32))
    tlx.local_store(b[0], tlx.local_load(a[0]))
    tlx.local_store(a[0], tlx.local_load(b[0]))
""",
            "Several trees may have one region only when the buffers of one are dead before those of the next are "
            "used. Here one tree says it: `tlx.reuse_group(a, b, group_type=tlx.reuse_group_type.distinct)`.",
        ),
        Entry(
            "Groups of buffers that do not pair up",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec()
    a = tlx.local_alloc((64, 64), tl.float32, 2, reuse=spec)
    b = tlx.local_alloc((64, 64), tl.float16, 3, reuse=spec)
    spec.set_buffer_overlap(tlx.reuse_group(a, tlx.reuse_group(b, group_size=2)))  # error
""",
            "Two buffers of `b` count as one, so the last of its three has no partner. Allocate four or drop it: "
            "`b[i]` then shares memory with `a[i]`, and `b[2]` with none.",
        ),
        Entry(
            "A buffer that is left out of the tree",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec()
    a = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)
    b = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)  # error
    spec.set_buffer_overlap(tlx.reuse_group(a))
""",
            "Where it would lie is not said. Put it into the tree, or give it a region of its own.",
        ),
        Entry(
            "A buffer twice in a tree",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec()
    a = tlx.local_alloc((64, 64), tl.float16, 2, reuse=spec)
    spec.set_buffer_overlap(tlx.reuse_group(a, a))  # error
""",
            "A buffer has one place.",
        ),
        Entry(
            "Shared memory from tensor memory",
            """
@tlx_xdsl.jit
def kernel():
    spec = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    a = tlx.local_alloc((128, 64), tl.float32, 1, tlx.storage_kind.tmem, reuse=spec)  # error
""",
            "Give the spec the storage of the buffers: `tlx.storage_alias_spec(storage=tlx.storage_kind.tmem)`.",
        ),
    ),
)
