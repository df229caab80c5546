"""Values that must be known when the kernel is compiled."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Compile-time values",
    "Shapes, types, axes and options are *constexprs*: parameters annotated with `tl.constexpr`, literals, and what is "
    "computed from them. Everything else is known at run time only.",
    (
        Entry(
            "A size that is known at run time only",
            """
@tlx_xdsl.jit
def kernel(x, n):
    offsets = tl.arange(0, n)  # error
    tl.store(x + offsets, 0.0)
""",
            "Blocks have a fixed size. Take a constexpr `BLOCK`, make a block of that size, and mask what lies beyond "
            "`n`: `tl.store(x + offsets, 0.0, mask=offsets < n)`.",
        ),
        Entry(
            "A plain assignment makes a runtime value",
            """
@tlx_xdsl.jit
def kernel(x):
    BLOCK = 64
    tl.store(x + tl.arange(0, BLOCK), 0.0)  # error
""",
            "As in Triton, a number that is assigned becomes an int32 on the GPU, so that a loop can change it. Write "
            "`BLOCK: tl.constexpr = 64`.",
        ),
        Entry(
            "A constexpr declared with a runtime value",
            """
@tlx_xdsl.jit
def kernel(x, n):
    half: tl.constexpr = n // 2  # error
    tl.store(x, half)
""",
            "Nothing that depends on an argument without `tl.constexpr` can be a constexpr. Drop the "
            "annotation, or make "
            "`n` a constexpr parameter.",
        ),
        Entry(
            "A constexpr that is declared twice",
            """
@tlx_xdsl.jit
def kernel(x, n):
    WIDTH: tl.constexpr = 32
    WIDTH: tl.constexpr = 64  # error
    tl.store(x, n * WIDTH)
""",
            "A constexpr keeps its value. Give the second one a name of its own.",
        ),
        Entry(
            "A size that is not a power of two",
            """
@tlx_xdsl.jit
def kernel(x):
    tl.store(x + tl.arange(0, 100), 0.0)  # error
""",
            "Take the next power of two (`triton.next_power_of_2`) and mask the rest.",
        ),
        Entry(
            "Arithmetic of constants that fails",
            """
@tlx_xdsl.jit
def kernel(x, PARTS: tl.constexpr = 0):
    tl.store(x, 128 // PARTS)  # error
""",
            "Constexprs are computed by Python, with Python's rules and errors. Check the value that was passed.",
        ),
        Entry(
            "A Python function called with a runtime value",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, float(n))  # error
""",
            "Functions of Python run in the compiler and take constexprs. Types are converted with `n.to(tl.float32)`.",
        ),
        Entry(
            "A helper that is not jitted",
            """
def double(value):
    return value * 2

@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, double(n))  # error
""",
            "A plain function is called at compile time. Decorate it with `@tlx_xdsl.jit` to have it compiled.",
        ),
        Entry(
            "A Python function that raises",
            """
def tile(size):
    raise ValueError(f"no tile of {size}")

@tlx_xdsl.jit
def kernel(x, SIZE: tl.constexpr = 48):
    tl.store(x + tl.arange(0, tile(SIZE)), 0.0)  # error
""",
            "What the helper raises is reported at its call. Here the kernel was asked for a size that the "
            "helper refuses.",
        ),
        Entry(
            "An f-string with a runtime value",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.static_assert(n.dtype == tl.int32, f"no room for {n}")  # error
    tl.store(x, n)
""",
            'Texts are made by the compiler. To see a value at run time use `tl.device_print("n", n)`.',
        ),
        Entry(
            "A static_assert that does not hold",
            """
@tlx_xdsl.jit
def kernel(x, BLOCK: tl.constexpr = 32):
    tl.static_assert(BLOCK >= 64, "BLOCK must be at least 64")  # error
    tl.store(x + tl.arange(0, BLOCK), 0.0)
""",
            "The kernel's author refuses this value. Pass another one, or let the autotuner skip the configuration.",
        ),
        Entry(
            "A static_assert about a runtime value",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.static_assert(n > 0)  # error
    tl.store(x, n)
""",
            'The compiler does not know `n`. Use `tl.device_assert(n > 0, "n")`, which checks on the GPU.',
        ),
    ),
)
