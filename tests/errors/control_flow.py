"""Branches, loops and Python that kernels do not have."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Control flow",
    "Conditions and bounds that are constexprs are decided by the compiler; all others become branches and "
    "loops of the "
    "GPU, in which a name keeps its type.",
    (
        Entry(
            "A type that changes in a loop",
            """
@tlx_xdsl.jit
def kernel(x, n):
    total = 0
    for i in range(n):
        total += tl.load(x + i)  # error
    tl.store(x, total)
""",
            "The value goes from turn to turn in one register. Start with a value of the final type, here "
            "`total = 0.0`.",
        ),
        Entry(
            "A shape that changes in a loop",
            """
@tlx_xdsl.jit
def kernel(x, n):
    total = 0.0
    for i in range(n):
        total += tl.load(x + i * 64 + tl.arange(0, 64))  # error
    tl.store(x, tl.sum(total, 0))
""",
            "A scalar can't become a block on the way. Start with `tl.zeros([64], tl.float32)`.",
        ),
        Entry(
            "Types that differ between branches",
            """
@tlx_xdsl.jit
def kernel(x, n, f):
    if n > 0:  # error
        value = f
    else:
        value = n
    tl.store(x, value)
""",
            "After the `if` the name has one type. Convert one side: `value = n.to(tl.float32)`.",
        ),
        Entry(
            "A conditional expression of two types",
            """
@tlx_xdsl.jit
def kernel(x, n, f):
    tl.store(x, f if n > 0 else n)  # error
""",
            "As with `if`: both values need one type.",
        ),
        Entry(
            "break",
            """
@tlx_xdsl.jit
def kernel(x, n):
    for i in range(n):
        if tl.load(x + i) == 0.0:
            break  # error
    tl.store(x, 1.0)
""",
            "Loops have one exit. Use `while` with a condition that says when to go on.",
        ),
        Entry(
            "continue",
            """
@tlx_xdsl.jit
def kernel(x, n):
    for i in range(n):
        if i == 3:
            continue  # error
        tl.store(x + i, 0.0)
""",
            "Put the rest of the body under the opposite condition: `if i != 3:`.",
        ),
        Entry(
            "A return inside a loop",
            """
@tlx_xdsl.jit
def kernel(x, n):
    for i in range(n):
        if tl.load(x + i) < 0.0:
            return  # error
        tl.store(x + i, 0.0)
""",
            "An early `return` may stand in an `if`, not in a loop or a task. Mask what follows, or keep a flag that a "
            "`while` looks at.",
        ),
        Entry(
            "A loop over something else than a range",
            """
@tlx_xdsl.jit
def kernel(x, n):
    for step in (1, 2, 4):  # error
        tl.store(x + step, n)
""",
            "Loops count. To unroll over a tuple, index it: `for i in tl.static_range(3): step = steps[i]`, with the "
            "tuple in a constexpr.",
        ),
        Entry(
            "A static_range with a runtime bound",
            """
@tlx_xdsl.jit
def kernel(x, n):
    for i in tl.static_range(n):  # error
        tl.store(x + i, 0.0)
""",
            "`tl.static_range` is unrolled by the compiler, which must know how often. Use `range` or "
            "`tl.range`, or make "
            "`n` a constexpr.",
        ),
        Entry(
            "A range of floats",
            """
@tlx_xdsl.jit
def kernel(x, n):
    for i in range(n / 2):  # error
        tl.store(x + i, 0.0)
""",
            "Bounds are integers: `n // 2`.",
        ),
        Entry(
            "An else after a loop",
            """
@tlx_xdsl.jit
def kernel(x, n):
    for i in range(n):
        tl.store(x + i, 0.0)
    else:
        tl.store(x, 1.0)  # error
""",
            "Without `break` the `else` always runs: put its statements after the loop.",
        ),
        Entry(
            "try, raise and other statements of Python",
            """
@tlx_xdsl.jit
def kernel(x, n):
    if n < 0:
        raise ValueError("n")  # error
    tl.store(x, n)
""",
            "A GPU has no exceptions. Check arguments before the launch, or with `tl.device_assert`. Classes, "
            "functions and "
            "imports belong outside of the kernel.",
        ),
        Entry(
            "An item that is assigned",
            """
@tlx_xdsl.jit
def kernel(x, n):
    x[n] = 0.0  # error
""",
            "Values never change, memory does: `tl.store(x + n, 0.0)`.",
        ),
        Entry(
            "The operator @",
            """
@tlx_xdsl.jit
def kernel(x):
    a = tl.zeros([64, 64], tl.float16)
    tl.store(x, tl.sum(tl.sum(a @ a, 0), 0))  # error
""",
            "Matrix products have options, so they are functions: `tl.dot(a, a)`, `tlx.async_dot`.",
        ),
    ),
)
