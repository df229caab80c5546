"""Puzzle 12: two buffers in the same memory, one after the other, in each turn of a loop.

marimo edit notebooks/puzzles/12_lifetimes.py      as a notebook
python notebooks/puzzles/12_lifetimes.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 12: lifetimes")


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
    # 12. Aliasing over time

    Tiles of fp16 are loaded into `raw`, doubled in fp32 into `doubled`, and stored from there. Both buffers are **the same memory**:
    `raw` is not needed any more when `doubled` is written. That is a promise about time, and the loop breaks it: it comes round.

    Draw who is alive when, and find the end of each lifetime. A buffer that TMA reads is alive until TMA has read it.

    You need `tlx.async_descriptor_store_wait(n)`: at most `n` stores of this task still read their buffers.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def lifetimes(src, dst, TILES, TILE: tl.constexpr):
        memory = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
        raw = tlx.local_alloc((TILE, TILE), tl.float16, 1, reuse=memory)
        doubled = tlx.local_alloc((TILE, TILE), tl.float32, 1, reuse=memory)
        memory.set_buffer_overlap(tlx.reuse_group(raw, doubled, group_type=tlx.reuse_group_type.shared))
        full = tlx.alloc_barriers(1)
        for t in range(TILES):
            # Your code: one line in this loop, and it is not here that it must stand.
            tlx.barrier_expect_bytes(full[0], TILE * TILE * 2)
            tlx.async_descriptor_load(src, raw[0], [t * TILE, 0], full[0])
            tlx.barrier_wait(full[0], t & 1)
            tile = tlx.local_load(raw[0])
            tlx.local_store(doubled[0], tile.to(tl.float32) * 2)
            tlx.fence_async_shared()
            tlx.async_descriptor_store(dst, doubled[0], [t * TILE, 0])
        tlx.async_descriptor_store_wait(0)

    return (lifetimes,)


@app.cell
def _(judged, lifetimes, np, settled, tlx_xdsl):
    src = np.random.default_rng(0).standard_normal((4 * 32, 32)).astype(np.float16)
    dst = np.empty(src.shape, np.float32)
    tile = tlx_xdsl.TensorDescriptor.from_tensor
    # After the passes that lay out memory: before them, the buffers are apart.
    verdict = judged(
        lifetimes, 1, tile(src, [32, 32]), tile(dst, [32, 32]), 4, TILE=32, stage="ttgir",
        expected={"dst": (dst, src.astype(np.float64) * 2)},
    )  # fmt: skip
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    `doubled` of tile 0 dies when its store has read it; `raw` of tile 1 is born when its load begins.
    ///

    /// details | Why not wait(1)?
    There is one buffer: a store that still reads it is one too many. With two, `wait(1)` would do.
    ///

    /// details | See it
    `tlx map FILE.py:KERNEL` shows which buffers share memory.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
