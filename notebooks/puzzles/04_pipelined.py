"""Puzzle 4: asynchronous copies in a ring. How many may be in flight?

marimo edit notebooks/puzzles/04_pipelined.py      as a notebook
python notebooks/puzzles/04_pipelined.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 4: pipelined")


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
    # 4. A pipeline

    `y` is the sum of `TILES` tiles of `x`. While one tile is added the next ones are on their way: `tlx.async_load` starts a copy
    to **shared memory** (`cp.async`), `async_load_commit_group` closes a group of copies, and `async_load_wait_group(n)` waits until
    at most the `n` youngest groups are in flight. The ring has `STAGES` buffers; `STAGES - 1` copies are started ahead.

    Nothing is waited for below. Put the wait where it belongs, with the largest number that is right.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def pipelined(x, y, TILES, TILE: tl.constexpr, STAGES: tl.constexpr):
        at = tl.arange(0, TILE)
        ring = tlx.local_alloc((TILE,), tl.float32, STAGES)
        for t in tl.static_range(STAGES - 1):
            tlx.async_load(x + t * TILE + at, ring[t], mask=(t < TILES) & (at >= 0))
            tlx.async_load_commit_group()
        total = tl.zeros((TILE,), tl.float32)
        for t in range(TILES):
            # Your code: the copy of tile t has to be complete here.
            total += tlx.local_load(ring[t % STAGES])
            ahead = t + STAGES - 1
            tlx.async_load(x + ahead * TILE + at, ring[ahead % STAGES], mask=(ahead < TILES) & (at >= 0))
            tlx.async_load_commit_group()
        tlx.async_load_wait_group(0)
        tl.store(y + at, total)

    return (pipelined,)


@app.cell
def _(judged, np, pipelined, settled):
    x = np.random.default_rng(0).standard_normal((7, 128)).astype(np.float32)
    y = np.empty(128, np.float32)
    verdict = judged(pipelined, 1, x, y, 7, TILE=128, STAGES=3, expected={"y": (y, x.sum(0))})
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    At the top of step `t`, `STAGES - 1 + t` groups have been committed, one for each tile from 0 on. Which of
    them may still be in flight, if tile `t` must not be?
    ///

    /// details | Is 0 right?
    It is, and it is a pipeline no more: each step then waits for all copies, also for those that were started a
    moment ago.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
