"""Puzzle 6: a deadlock to fix. Which wait can never end, and why?

marimo edit notebooks/puzzles/06_deadlock.py      as a notebook
python notebooks/puzzles/06_deadlock.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 6: deadlock")


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
    # 6. A deadlock

    The kernel copies tiles through a ring of `STAGES` buffers. It hangs; on a GPU you would see nothing at all.

    Read the report from the top: who waits, for what, and what could have released it. Then change **one** line.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def deadlock(src, dst, TILES, TILE: tl.constexpr, STAGES: tl.constexpr):
        tiles = tlx.local_alloc((TILE, TILE), tl.float16, STAGES)
        full, empty = tlx.alloc_barriers(STAGES), tlx.alloc_barriers(STAGES)
        with tlx.async_tasks():
            with tlx.async_task("default"):
                for t in range(TILES):
                    stage, phase = t % STAGES, (t // STAGES) & 1
                    tlx.barrier_wait(empty[stage], phase)
                    tlx.barrier_expect_bytes(full[stage], TILE * TILE * 2)
                    tlx.async_descriptor_load(src, tiles[stage], [t * TILE, 0], full[stage])
            with tlx.async_task(num_warps=1):
                for t in range(TILES):
                    stage, phase = t % STAGES, (t // STAGES) & 1
                    tlx.barrier_wait(full[stage], phase)
                    tlx.async_descriptor_store(dst, tiles[stage], [t * TILE, 0])
                    tlx.async_descriptor_store_wait(0)
                    tlx.barrier_arrive(empty[stage])

    return (deadlock,)


@app.cell
def _(deadlock, judged, np, settled, tlx_xdsl):
    src = np.random.default_rng(0).standard_normal((5 * 16, 16)).astype(np.float16)
    dst = np.empty_like(src)
    tile = tlx_xdsl.TensorDescriptor.from_tensor
    verdict = judged(
        deadlock, 1, tile(src, [16, 16]), tile(dst, [16, 16]), 5, TILE=16, STAGES=2, expected={"dst": (dst, src)}
    )
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    Both tasks wait in the first step. A ring begins with empty buffers: which of the two waits must pass at
    once?
    ///

    /// details | Phases
    A barrier that has completed no phase is in phase 0. A wait for parity 1 then passes, as if the phase before
    it had been completed.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
