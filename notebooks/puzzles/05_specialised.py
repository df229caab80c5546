"""Puzzle 5: one task loads through TMA, another one computes.

marimo edit notebooks/puzzles/05_specialised.py      as a notebook
python notebooks/puzzles/05_specialised.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 5: specialised")


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
    # 5. Tasks

    `dst = src * 2`, tile by tile. One **task** loads tiles: `async_descriptor_load` asks the TMA unit to copy a tile, and the bytes
    that arrive complete the **mbarrier** `full`, which expects so many of them. The other task has warps of its own.

    `barrier_wait(b, parity)` waits until the phase of that parity is complete. Phases count from 0, so the n-th use of a buffer
    waits for parity `n & 1`. The loader waits for `empty` with the opposite parity: a fresh barrier lets the first wait pass.

    Write the rest of the second task: double the tile where it lies, send it to `dst`, and give the buffer back.

    You need `tlx.local_load`, `tlx.local_store`, `tlx.fence_async_shared`, `tlx.async_descriptor_store`,
    `tlx.async_descriptor_store_wait(0)` and `tlx.barrier_arrive`.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def specialised(src, dst, TILES, TILE: tl.constexpr):
        tiles = tlx.local_alloc((TILE, TILE), tl.float16, 1)
        full, empty = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
        with tlx.async_tasks():
            with tlx.async_task("default"):
                for t in range(TILES):
                    tlx.barrier_wait(empty[0], (t & 1) ^ 1)
                    tlx.barrier_expect_bytes(full[0], TILE * TILE * 2)
                    tlx.async_descriptor_load(src, tiles[0], [t * TILE, 0], full[0])
            with tlx.async_task(num_warps=4):
                for t in range(TILES):
                    tlx.barrier_wait(full[0], t & 1)
                    # Your code: double the tile, send it to dst, say that the buffer is free.

    return (specialised,)


@app.cell
def _(judged, np, settled, specialised, tlx_xdsl):
    src = np.random.default_rng(0).standard_normal((5 * 16, 16)).astype(np.float16)
    dst = np.empty_like(src)
    tile = tlx_xdsl.TensorDescriptor.from_tensor
    verdict = judged(
        specialised, 1, tile(src, [16, 16]), tile(dst, [16, 16]), 5, TILE=16, expected={"dst": (dst, src * 2)}
    )
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    Begin with the arrival at `empty[0]`, which ends the deadlock; the check then says what is still missing.
    ///

    /// details | Why a fence?
    Threads write shared memory through the generic proxy, TMA reads it through the async proxy.
    `fence_async_shared` puts the writes in order before the copy.
    ///

    /// details | Why wait for the store?
    The copy reads the buffer while the task goes on. Only when it has read it may the next tile come.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
