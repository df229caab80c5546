"""Names and attributes that are not there."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Names and attributes",
    "A kernel sees its arguments, what it has assigned, and the names of its module.",
    (
        Entry(
            "A misspelt name",
            """
@tlx_xdsl.jit
def kernel(x, BLOCK: tl.constexpr = 64):
    offsets = tl.arange(0, BLOKC)  # error
    tl.store(x + offsets, 0.0)
""",
            "The caret stands under the name. Names that are similar and exist here are suggested.",
        ),
        Entry(
            "A misspelt function of the language",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.stor(x + n, 0.0)  # error
""",
            "Attributes of modules are looked up when the kernel is compiled, as in Python.",
        ),
        Entry(
            "An attribute that values do not have",
            """
@tlx_xdsl.jit
def kernel(x, n):
    block = tl.load(x + tl.arange(0, 64))
    tl.store(x + n, block.szie)  # error
""",
            "Blocks have `dtype`, `shape`, `numel`, `T` and the functions that are methods too, such as "
            "`block.sum(0)`. "
            "Their size is `block.numel`.",
        ),
        Entry(
            "A value that one branch only gives",
            """
@tlx_xdsl.jit
def kernel(x, n):
    if n > 0:
        scale = 2.0
    tl.store(x, scale)  # error
""",
            "When `n` is not positive, `scale` has no value. Assign it in both branches, or before the `if`.",
        ),
        Entry(
            "A value that a loop gives",
            """
@tlx_xdsl.jit
def kernel(x, n):
    for i in range(n):
        last = tl.load(x + i)
    tl.store(x, last)  # error
""",
            "The loop may not run even once. Give `last` a value of the same type before the loop.",
        ),
        Entry(
            "The counter after its loop",
            """
@tlx_xdsl.jit
def kernel(x, n):
    for i in range(n):
        tl.store(x + i, 0.0)
    tl.store(x + i, 1.0)  # error
""",
            "The same: with `n` zero there is no `i`. Compute the last index from the bounds, here `n - 1`.",
        ),
        Entry(
            "A name that is used before it is assigned",
            """
@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, total)  # error
    total = n + 1
""",
            "Statements run in order. Move the assignment up.",
        ),
        Entry(
            "A global variable that is no constant",
            """
SCALE = 3

@tlx_xdsl.jit
def kernel(x, n):
    tl.store(x, n * SCALE)  # error
""",
            "The compiled kernel would keep the old value when Python changes `SCALE` later. Declare it as "
            "`SCALE = tl.constexpr(3)`, or pass it as an argument.",
        ),
        Entry(
            "A variable of the function around the kernel",
            """
def make(scale):
    @tlx_xdsl.jit
    def kernel(x, n):
        tl.store(x, n * scale)  # error
    return kernel

kernel = make(3)
""",
            "As with globals. Write `scale = tl.constexpr(scale)` in `make`, or make it a parameter of the kernel.",
        ),
    ),
)
