"""Features that the GPU lacks for which a kernel is compiled."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Targets",
    "A kernel is compiled for one GPU architecture (`--target`, sm_90a by default). [targets.md](targets.md) says "
    "which one has what.",
    (
        Entry(
            "A product of the tensor cores that the target has no instruction for",
            """
@tlx_xdsl.jit
def kernel(x):
    a = tlx.local_alloc((64, 64), tl.float16, 1)[0]
    c = tlx.async_dot(a, a, tl.zeros((64, 64), tl.float32))  # error
    tlx.async_dot_wait(0, c)
""",
            "`tl.dot(tlx.local_load(a), tlx.local_load(b), acc)` multiplies on every target, with what it has.",
            target="sm_89",
        ),
        Entry(
            "TMA before Hopper",
            """
@tlx_xdsl.jit
def kernel(tiles):
    tile = tlx.local_alloc((64, 64), tl.float16, 1)[0]
    bar = tlx.alloc_barriers(1)[0]
    tlx.async_descriptor_load(tiles, tile, [0, 0], bar)  # error
""",
            "Take pointers and `tlx.async_load`, which every target has.",
            target="sm_86",
        ),
        Entry(
            "A tensor descriptor of the language in a kernel with buffers",
            """
@tlx_xdsl.jit
def kernel(tiles):
    tile = tlx.local_alloc((64, 64), tl.float16, 1)[0]
    tlx.local_store(tile, tiles.load([0, 0]))  # error
""",
            "Where there is no TMA, stock Triton makes pointers of the descriptors of plain kernels, but not of "
            "kernels with buffers: load through pointers.",
            target="sm_80",
        ),
        Entry(
            "Several arrivals at once on Ampere",
            """
@tlx_xdsl.jit
def kernel(x):
    bar = tlx.alloc_barriers(1, arrive_count=2)[0]
    tlx.barrier_arrive(bar, 2)  # error
""",
            "Before Hopper an mbarrier counts single arrivals: arrive twice.",
            target="sm_80",
        ),
        Entry(
            "Registers for tasks where they can't be exchanged",
            """
@tlx_xdsl.jit
def kernel(x):
    with tlx.async_tasks():  # error
        with tlx.async_task("default"):
            tl.store(x, 1.0)
        with tlx.async_task(num_warps=4, registers=24):
            tl.store(x + 1, 2.0)
""",
            "Leave `registers` out: all warps have the same number then.",
            target="sm_89",
        ),
        Entry(
            "Tensor memory on a Blackwell without it",
            """
@tlx_xdsl.jit
def kernel(x):
    acc = tlx.local_alloc((128, 128), tl.float32, 1, tlx.storage_kind.tmem)  # error
""",
            "The GPUs of sm_120a have no tensor memory and no tcgen05. `tl.dot` multiplies on all of them.",
            target="sm_120a",
        ),
        Entry(
            "fp8e4nv before Ada",
            """
@tlx_xdsl.jit
def kernel(x, y):
    i = tl.arange(0, 64)
    narrow = tl.load(x + i).to(tl.float8e4nv)  # error
    tl.store(y + i, narrow.to(tl.float32))
""",
            "`tl.float8e5` is converted on every target.",
            target="sm_86",
        ),
        Entry(
            "A gather through a descriptor on Hopper",
            """
@tlx_xdsl.jit
def kernel(rows):
    picked = rows.gather(tl.arange(0, 32), 0)  # error
    rows.scatter(picked, tl.arange(0, 32), 0)
""",
            "TMA reads blocks there, but no rows that are chosen one by one: gather through pointers.",
            types={"rows": "tensordesc<fp16[1, 64]>"},
        ),
    ),
)
