"""Warp-specialised tasks."""

from tests.errors.entry import Entry, Topic

TOPIC = Topic(
    "Tasks",
    "`with tlx.async_tasks():` holds tasks that run at the same time, each on its own warps.",
    (
        Entry(
            "A task that uses a block from outside",
            """
@tlx_xdsl.jit
def kernel(x):
    i = tl.arange(0, 64)
    block = tl.load(x + i)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(x + i, 0.0)
        with tlx.async_task(num_warps=4):
            tl.store(x + 64 + tl.arange(0, 64), block)  # error
""",
            "A block lies in the registers of the warps that computed it. Load it inside the task, or pass it through "
            "shared memory and a barrier. Scalars, buffers, and blocks of scalars such as `tl.arange(0, 64) + n` may "
            "be used.",
        ),
        Entry(
            "No default task",
            """
@tlx_xdsl.jit
def kernel(x):
    with tlx.async_tasks():  # error
        with tlx.async_task(num_warps=4):
            tl.store(x, 1.0)
""",
            'The kernel\'s own warps need something to do as well: exactly one task is `tlx.async_task("default")`.',
        ),
        Entry(
            "A task without warps",
            """
@tlx_xdsl.jit
def kernel(x):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(x, 1.0)
        with tlx.async_task():  # error
            tl.store(x + 1, 2.0)
""",
            "Say how many: `tlx.async_task(num_warps=1)`.",
        ),
        Entry(
            "Warps that are no power of two",
            """
@tlx_xdsl.jit
def kernel(x):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(x, 1.0)
        with tlx.async_task(num_warps=3):  # error
            tl.store(x + 1, 2.0)
""",
            "Layouts divide blocks among a power of two of warps.",
        ),
        Entry(
            "Registers that the GPU can't give",
            """
@tlx_xdsl.jit
def kernel(x):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(x, 1.0)
        with tlx.async_task(num_warps=4, registers=100):  # error
            tl.store(x + 1, 2.0)
""",
            "`setmaxnreg` counts in steps of 8, from 24 to 256.",
        ),
        Entry(
            "More registers than there are",
            """
@tlx_xdsl.jit
def kernel(x):
    with tlx.async_tasks():  # error
        with tlx.async_task("default", registers=240):
            tl.store(x, 1.0)
        with tlx.async_task(num_warps=4, registers=240):
            tl.store(x + 1, 2.0)
        with tlx.async_task(num_warps=4, registers=40):
            tl.store(x + 2, 3.0)
""",
            "65536 registers are dealt out evenly to the threads of a block, in steps of 8, and the tasks may only "
            "shift them among each other. Small tasks share a warp group, whose threads all have the registers of the "
            "greediest. Here 224 are left for the default task.",
        ),
        Entry(
            "A statement between tasks",
            """
@tlx_xdsl.jit
def kernel(x):
    with tlx.async_tasks():
        row = tl.program_id(0)  # error
        with tlx.async_task("default"):
            tl.store(x + row, 1.0)
""",
            "Compute common scalars before `tlx.async_tasks()`; each task computes them again or receives them.",
        ),
        Entry(
            "A task on its own",
            """
@tlx_xdsl.jit
def kernel(x):
    with tlx.async_task("default"):  # error
        tl.store(x, 1.0)
""",
            "Put all tasks into one `with tlx.async_tasks():`.",
        ),
        Entry(
            "A task that depends on a runtime value",
            """
@tlx_xdsl.jit
def kernel(x, n):
    with tlx.async_tasks():
        if n > 0:  # error
            with tlx.async_task("default"):
                tl.store(x, 1.0)
""",
            "Which tasks there are is decided at compile time: make the condition a constexpr, or put the `if` "
            "into the "
            "task.",
        ),
        Entry(
            "Another with",
            """
@tlx_xdsl.jit
def kernel(x):
    with open("numbers.txt") as file:  # error
        tl.store(x, 1.0)
""",
            "Tasks are all that `with` is for in a kernel.",
        ),
    ),
)
