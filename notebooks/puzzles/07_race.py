"""Puzzle 7: two races to fix. What reads a buffer while something writes it?

marimo edit notebooks/puzzles/07_race.py      as a notebook
python notebooks/puzzles/07_race.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 7: race")


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
    # 7. A race

    `dst = src + 1`, through a ring. The numbers may be right in one order of the tasks and wrong in another one. The check runs
    several, and it reports an access that nothing orders after another one even where the numbers happen to be right.

    There are two mistakes. Mend what is reported, and check again.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def race(src, dst, TILES, TILE: tl.constexpr, STAGES: tl.constexpr):
        tiles = tlx.local_alloc((TILE, TILE), tl.float16, STAGES)
        full, empty = tlx.alloc_barriers(STAGES), tlx.alloc_barriers(STAGES)
        with tlx.async_tasks():
            with tlx.async_task("default"):
                for t in range(TILES):
                    stage, phase = t % STAGES, (t // STAGES) & 1
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    tlx.barrier_expect_bytes(full[stage], TILE * TILE * 2)
                    tlx.async_descriptor_load(src, tiles[stage], [t * TILE, 0], full[stage])
            with tlx.async_task(num_warps=4):
                for t in range(TILES):
                    stage, phase = t % STAGES, (t // STAGES) & 1
                    tlx.barrier_wait(full[stage], phase)
                    tlx.local_store(tiles[stage], tlx.local_load(tiles[stage]) + 1)
                    tlx.async_descriptor_store(dst, tiles[stage], [t * TILE, 0])
                    tlx.barrier_arrive(empty[stage])

    return (race,)


@app.cell
def _(judged, np, race, settled, tlx_xdsl):
    src = np.random.default_rng(0).standard_normal((5 * 16, 16)).astype(np.float16)
    dst = np.empty_like(src)
    tile = tlx_xdsl.TensorDescriptor.from_tensor
    verdict = judged(
        race, 1, tile(src, [16, 16]), tile(dst, [16, 16]), 5, TILE=16, STAGES=2, expected={"dst": (dst, src + 1)}
    )
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint 1
    TMA reads what the threads have written: puzzle 5 has the fence for it.
    ///

    /// details | Hint 2
    `barrier_arrive(empty[stage])` says that the buffer is free. Is it, while `async_descriptor_store` is in
    flight?
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
