"""Puzzle 11: a sum over several GPUs, by stores into each other's memory and signals.

marimo edit notebooks/puzzles/11_ranks.py      as a notebook
python notebooks/puzzles/11_ranks.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 11: several GPUs")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import tlx_xdsl
    import tlx_xdsl.language as tl
    import tlx_xdsl.language.tlx as tlx
    from tlx_xdsl.runtime.answers import judged, settled

    return judged, mo, np, settled, tl, tlx, tlx_xdsl


@app.cell
def _(mo):
    mo.md("""
    # 11. Several GPUs

    Each GPU is a **rank**. All run the same kernel; `tlx.rank()` says which one it is. `slots` and `pads` are *symmetric*: each rank
    has such an array, and `tlx.peer(x, r)` is a pointer to the one of rank `r`.

    Each rank stores its `BLOCK` numbers into its own line of everybody's `slots`, signals that they are there, and sums up the lines
    of its own `slots`. `tlx.signal(pad, index)` adds 1 to a counter, after all that the task has written before.

    The kernel sums up lines without knowing that they have come. One line is missing.

    You need `tlx.wait_signal(pad, index, value)`: it waits until a counter of the rank's own pad is `value` or more.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def ranks(slots, pads, src, out, BLOCK: tl.constexpr):
        me = tlx.rank()
        world: tl.constexpr = tlx.world_size()
        at = tl.arange(0, BLOCK)
        mine = tl.load(src + at)
        for r in tl.static_range(world):
            tl.store(tlx.peer(slots, r) + me * BLOCK + at, mine)
            tlx.signal(tlx.peer(pads, r), 0)
        # Your code: the lines of all ranks have come.
        total = tl.zeros((BLOCK,), tl.float32)
        for r in tl.static_range(world):
            total += tl.load(tlx.peer(slots, me) + r * BLOCK + at)
        tl.store(out + at, total)

    return (ranks,)


@app.cell
def _(judged, np, ranks, settled, tlx_xdsl):
    WORLD, BLOCK = 3, 16
    src = list(np.random.default_rng(0).standard_normal((WORLD, BLOCK)).astype(np.float32))
    slots = [np.full((WORLD, BLOCK), np.nan, np.float32) for _ in range(WORLD)]
    pads = [np.zeros(1, np.int32) for _ in range(WORLD)]
    out = [np.empty(BLOCK, np.float32) for _ in range(WORLD)]

    def reset():
        for slot, pad in zip(slots, pads, strict=True):
            slot.fill(np.nan)
            pad.fill(0)

    verdict = judged(
        ranks, 1, tlx_xdsl.symmetric(slots), tlx_xdsl.symmetric(pads), src, out, BLOCK=BLOCK, ranks=WORLD, prepare=reset,
        expected={f"out of rank {rank}": (each, np.sum(src, 0)) for rank, each in enumerate(out)},
    )  # fmt: skip
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    Every rank signals to every rank, itself included: how many signals does a pad get?
    ///

    /// details | Why is one signal not enough?
    The first may be the rank's own. A counter says how many have come, not from whom.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
