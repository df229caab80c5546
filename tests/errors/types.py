"""Types and shapes."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Types and shapes",
    "Numbers and blocks combine as in Triton: shapes broadcast as in numpy, types are promoted.",
    (
        Entry(
            "Shapes that do not broadcast",
            """
@tlx_xdsl.jit
def kernel(x):
    rows = tl.arange(0, 32)
    columns = tl.arange(0, 64)
    tl.store(x + rows + columns, 0.0)  # error
""",
            "Sizes must be equal or 1. For a block of 32 x 64 write `rows[:, None] * 64 + columns[None, :]`.",
        ),
        Entry(
            "An operator that a type does not have",
            """
@tlx_xdsl.jit
def kernel(x, f):
    tl.store(x, f << 1)  # error
""",
            "Shifts and bitwise operators are for integers. Multiply, or reinterpret the bits with "
            "`f.to(tl.int32, bitcast=True)`.",
        ),
        Entry(
            "Arithmetic with something else",
            """
@tlx_xdsl.jit
def kernel(x, tiles):
    tl.store(x, tiles + 1)  # error
""",
            "Operators take numbers, scalars and blocks. What a descriptor describes is read by `tiles.load([0, 0])`.",
        ),
        Entry(
            "A pointer moved by a float",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x + n / 2, 0.0)  # error
""",
            "`/` makes a float, also of integers. Use `//`.",
        ),
        Entry(
            "Pointers that are subtracted",
            """
@tlx_xdsl.jit
def kernel(x, y):
    tl.store(x, y - x)  # error
""",
            "A pointer moves by integers only. For a distance in bytes: `y.to(tl.int64) - x.to(tl.int64)`.",
        ),
        Entry(
            "A constant beyond the type",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, n + 3000000000)  # error
""",
            "A constant takes the other operand's type, here int32, and must fit. Widen the operand: "
            "`n.to(tl.int64) + 3000000000`.",
        ),
        Entry(
            "Division of integers of different signs",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, n // n.to(tl.uint32))  # error
""",
            "The result would depend on how the signed one is read. Cast one operand to the other's type.",
        ),
        Entry(
            "A block where a scalar is needed",
            """
@tlx_xdsl.jit
def kernel(x):
    block = tl.load(x + tl.arange(0, 64))
    if block > 0:  # error
        tl.store(x, 1.0)
""",
            "All threads take one way through the kernel. Choose by element with `tl.where(block > 0, a, b)` or "
            "a mask, "
            "or reduce the condition to a scalar, such as `tl.max(block, 0) > 0`.",
        ),
        Entry(
            "A block that is indexed",
            """
@tlx_xdsl.jit
def kernel(x):
    block = tl.load(x + tl.arange(0, 64))
    tl.store(x, block[3])  # error
""",
            "Its elements lie in the registers of many threads. Load the element through its own pointer, pick it with "
            "`tl.sum(tl.where(index == 3, block, 0), 0)`, or use `tl.gather`.",
        ),
        Entry(
            "A pointer that is indexed",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, x[n])  # error
""",
            "Memory is read and written by `tl.load` and `tl.store`.",
        ),
        Entry(
            "A reshape to another number of elements",
            """
@tlx_xdsl.jit
def kernel(x):
    square = tl.reshape(tl.arange(0, 64), (8, 16))  # error
    tl.store(x, tl.sum(tl.sum(square, 0), 0))
""",
            "A reshape keeps the elements: the product of the sizes must stay the same.",
        ),
        Entry(
            "A bitcast to another width",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, n.to(tl.float16, bitcast=True))  # error
""",
            "A bitcast reads the same bits as another type of the same width. Drop `bitcast=True` to convert "
            "the value.",
        ),
        Entry(
            "A type that is not a type",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, n.to("float32"))  # error
""",
            "Element types are objects of the language, such as `tl.float32`; also `x.dtype.element_ty` of a pointer.",
        ),
    ),
)
