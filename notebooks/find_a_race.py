"""A pipeline of tiles with a mistake that a GPU might forgive for years, and what the interpreter says about it.

marimo edit notebooks/find_a_race.py      as a notebook
python notebooks/find_a_race.py           from top to bottom, without a browser
"""

import marimo

app = marimo.App(width="medium", app_title="tlx_xdsl: find a race")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import tlx_xdsl
    import tlx_xdsl.language as tl
    import tlx_xdsl.language.tlx as tlx

    return mo, np, tl, tlx, tlx_xdsl


@app.cell
def _(mo):
    mo.md("""
    # Find a race

    One task loads tiles through TMA into a ring of buffers, another one doubles them and stores them back. Two arrays
    of barriers keep the tasks apart: `full` says that a tile has come, `empty` that its buffer is free again.

    Each flag of the kernel leaves one of the things out that keep it correct.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def doubled(
        src, dst, TILES: tl.constexpr, SLOTS: tl.constexpr, WAIT_FULL: tl.constexpr, WAIT_EMPTY: tl.constexpr,
        FENCE: tl.constexpr, ARRIVE: tl.constexpr,
    ):  # fmt: skip
        tiles = tlx.local_alloc((64, 64), tl.float16, SLOTS)
        full, empty = tlx.alloc_barriers(SLOTS), tlx.alloc_barriers(SLOTS)
        with tlx.async_tasks():
            with tlx.async_task("default"):
                for t in range(TILES):
                    slot = t % SLOTS
                    if WAIT_EMPTY:
                        tlx.barrier_wait(empty[slot], (t // SLOTS) & 1 ^ 1)
                    tlx.barrier_expect_bytes(full[slot], 64 * 64 * 2)
                    tlx.async_descriptor_load(src, tiles[slot], [t * 64, 0], full[slot])
            with tlx.async_task(num_warps=4):
                for t in range(TILES):
                    slot = t % SLOTS
                    if WAIT_FULL:
                        tlx.barrier_wait(full[slot], (t // SLOTS) & 1)
                    tlx.local_store(tiles[slot], tlx.local_load(tiles[slot]) * 2)
                    if FENCE:
                        tlx.fence_async_shared()
                    tlx.async_descriptor_store(dst, tiles[slot], [t * 64, 0])
                    tlx.async_descriptor_store_wait(0)
                    if ARRIVE:
                        tlx.barrier_arrive(empty[slot])

    return (doubled,)


@app.cell
def _():
    mistakes = {
        "none": {},
        "does not wait for the tile": {"WAIT_FULL": False},
        "does not wait for a free buffer": {"WAIT_EMPTY": False},
        "no fence between the store to shared memory and TMA": {"FENCE": False},
        "never says that a buffer is free": {"ARRIVE": False},
    }
    return (mistakes,)


@app.cell
def _(doubled, np, tlx_xdsl):
    def report(flags, schedule="round-robin"):
        """Run the kernel on five tiles: what the interpreter says of it, and whether the numbers are right."""
        src = np.random.default_rng(0).standard_normal((5 * 64, 64)).astype(np.float16)
        dst = np.full_like(src, np.nan)
        tile = tlx_xdsl.TensorDescriptor.from_tensor
        right = dict.fromkeys(("WAIT_FULL", "WAIT_EMPTY", "FENCE", "ARRIVE"), True)
        try:
            run = doubled.interpret(
                1, tile(src, [64, 64]), tile(dst, [64, 64]), TILES=5, SLOTS=2, schedule=schedule, **(right | flags)
            )
        except tlx_xdsl.CompilationError as error:
            return str(error)
        assert (dst == src * 2).all(), "a run without a fault has the right numbers"
        return f"no fault in {run.turns} turns"

    return (report,)


@app.cell
def _(mistakes, mo):
    mistake = mo.ui.dropdown(mistakes, value="does not wait for the tile", label="the mistake")
    schedule = mo.ui.dropdown(["round-robin", "random", "adversarial"], value="round-robin", label="the schedule")
    mo.hstack([mistake, schedule], justify="start")
    return mistake, schedule


@app.cell
def _(mistake, mo, report, schedule):
    said = report(mistake.value, schedule.value)
    mo.md(f"```\n{said}\n```")
    return (said,)


@app.cell
def _(mo):
    mo.md("""
    The error stands at the line that does wrong, and a note names what it collides with. A copy counts as an access
    from the moment it is issued: the missing wait is found even if the copy happens to be done in this run.

    All mistakes at once, in every schedule:
    """)
    return


@app.cell
def _(mistakes, mo, report):
    found = {
        (name, order): report(flags, order)
        for name, flags in mistakes.items()
        for order in ("round-robin", "random", "adversarial")
    }
    mo.ui.table(
        [
            {"mistake": name, "schedule": order, "the interpreter says": said.splitlines()[0].rpartition("error: ")[2]}
            for (name, order), said in found.items()
        ],
        selection=None,
    )
    return (found,)


if __name__ == "__main__":
    app.run()
