"""Arguments of kernels, and where kernels may be written."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Arguments and definitions",
    "What `tlx compile --signature` and `--constexpr`, `TLX_COMPILE` or `kernel.compile(...)` say about a kernel must "
    "fit its parameters.",
    (
        Entry(
            "A parameter without a type",
            """
@tlx_xdsl.jit
def kernel(x, count):  # error
    tl.store(x, count)
""",
            "Give one: `--signature count=i32`.",
        ),
        Entry(
            "A constexpr without a value",
            """
@tlx_xdsl.jit
def kernel(x, BLOCK: tl.constexpr):  # error
    tl.store(x + tl.arange(0, BLOCK), 0.0)
""",
            "Give one: `--constexpr BLOCK=64`, or a default in the definition.",
        ),
        Entry(
            "A type that does not exist",
            """
@tlx_xdsl.jit
def kernel(x, n):  # error
    tl.store(x, n)
""",
            "Types are spelt as in Triton: `*fp16`, `*fp16:16` (16-byte aligned), `i32`, `tensordesc<fp16[128, 64]>`.",
            types={"x": "*float32", "n": "i32"},
        ),
        Entry(
            "A name that is no parameter",
            """
@tlx_xdsl.jit
def kernel(x, rows):  # error
    tl.store(x, rows)
""",
            "Names must be those of the definition.",
            types={"x": "*fp32", "row": "i32"},
        ),
        Entry(
            "A type for a constexpr",
            """
@tlx_xdsl.jit
def kernel(x, BLOCK: tl.constexpr):  # error
    tl.store(x + tl.arange(0, BLOCK), 0.0)
""",
            "Its value is needed: `--constexpr BLOCK=64`.",
            types={"x": "*fp32", "BLOCK": "i32"},
        ),
        Entry(
            "Arguments by **",
            """
@tlx_xdsl.jit
def kernel(x, **options):  # error
    tl.store(x, 1.0)
""",
            "Each argument has a place on the GPU. `*args` takes a tuple.",
        ),
        Entry(
            "A lambda",
            """
kernel = tlx_xdsl.jit(lambda x: tl.store(x, 1.0))  # error
""",
            "The compiler reads the source of a definition with `def`.",
        ),
    ),
)
