"""Calls of functions, and what they return."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Functions",
    "A kernel calls functions of the language and other jitted functions, which are compiled where they are called. An "
    "error inside of one comes with notes that lead to the kernel.",
    (
        Entry(
            "A missing argument",
            """
@tlx_xdsl.jit
def kernel(x):
    tl.store(x)  # error
""",
            "The message ends with the parameters of the function.",
        ),
        Entry(
            "A misspelt keyword",
            """
@tlx_xdsl.jit
def kernel(x, n):
    i = tl.arange(0, 64)
    tl.store(
        x + i,
        0.0,
        maks=i < n,  # error
    )
""",
            "In a call of several lines the error stands at the argument.",
        ),
        Entry(
            "Too many arguments",
            """
@tlx_xdsl.jit
def scaled(value, scale):
    return value * scale

@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, scaled(n, 2, 3))  # error
""",
            "The caret stands under the first argument that has no parameter.",
        ),
        Entry(
            "A runtime value for a constexpr parameter",
            """
@tlx_xdsl.jit
def row(width: tl.constexpr):
    return tl.arange(0, width)

@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x + row(n), 0.0)  # error
""",
            "Hand a constexpr on: a literal, a constexpr parameter of the kernel, or what is computed from them.",
        ),
        Entry(
            "An error inside a function",
            """
@tlx_xdsl.jit
def shifted(value):
    return value << 1  # error

@tlx_xdsl.jit
def kernel(x, f):
    tl.store(x, shifted(f))
""",
            "The function itself is right for integers. The note says where it was called with a float.",
        ),
        Entry(
            "Recursion",
            """
@tlx_xdsl.jit
def factorial(n):
    return n * factorial(n - 1)  # error

@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, factorial(n))
""",
            "A GPU kernel has no stack to recurse on. Write a loop.",
        ),
        Entry(
            "Returns of different types",
            """
@tlx_xdsl.jit
def clamped(value):
    if value < 0:
        return 0.0
    return value  # error

@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, clamped(n))
""",
            "A function has one type of result for given arguments. Here `return 0` would do.",
        ),
        Entry(
            "A kernel that returns something",
            """
@tlx_xdsl.jit
def kernel(x, n):
    return tl.load(x + n)  # error
""",
            "No caller receives it: store the result through a pointer.",
        ),
        Entry(
            "Something that can't be called",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, open("numbers.txt"))  # error
""",
            "Kernels call the language, jitted functions, and plain functions whose arguments are constexprs.",
        ),
    ),
)
