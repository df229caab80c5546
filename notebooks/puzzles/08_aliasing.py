"""Puzzle 8: more buffers than shared memory holds. Which ones are not needed at the same time?

marimo edit notebooks/puzzles/08_aliasing.py      as a notebook
python notebooks/puzzles/08_aliasing.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 8: aliasing")


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
    # 8. Storage aliasing

    A tile of 128 x 256 of a matrix product. The operands take 192 KB of shared memory, the result 64 KB more: a Hopper GPU has 227 KB
    for a thread block. But when the result is written, the operands are not needed any more. Whether stock Triton finds that
    out by itself is left to chance below.

    Say so: `a_tiles` and `b_tiles` are `distinct`, both together and `c_tile` are `shared`. Your code is four lines and
    three arguments `reuse=storage`; the compiler finds the offsets. If you say too much, the interpreter reports what overwrites what.

        storage = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
        pair = tlx.reuse_group(x, y, group_type=tlx.reuse_group_type.distinct)      # never overlap
        storage.set_buffer_overlap(tlx.reuse_group(pair, z, group_type=tlx.reuse_group_type.shared))
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def aliased(a, b, c, STEPS, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
        # Your code: the three allocations in one region, and which of them may overlap.
        a_tiles = tlx.local_alloc((M, K), tl.float16, 1)
        b_tiles = tlx.local_alloc((K, N), tl.float16, 1)
        c_tile = tlx.local_alloc((M, N), tl.float16, 1)
        loaded = tlx.alloc_barriers(1)
        acc = tl.zeros((M, N), tl.float32)
        for k in range(STEPS):
            tlx.barrier_expect_bytes(loaded[0], (M + N) * K * 2)
            tlx.async_descriptor_load(a, a_tiles[0], [0, k * K], loaded[0])
            tlx.async_descriptor_load(b, b_tiles[0], [k * K, 0], loaded[0])
            tlx.barrier_wait(loaded[0], k & 1)
            acc = tlx.async_dot(a_tiles[0], b_tiles[0], acc)
            acc = tlx.async_dot_wait(0, acc)
        tlx.local_store(c_tile[0], acc.to(tl.float16))
        tlx.fence_async_shared()
        tlx.async_descriptor_store(c, c_tile[0], [0, 0])
        tlx.async_descriptor_store_wait(0)

    return (aliased,)


@app.cell
def _(aliased, judged, np, settled, tlx_xdsl):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((128, 512)).astype(np.float16), rng.standard_normal((512, 256)).astype(np.float16)
    c = np.empty((128, 256), np.float16)
    tile = tlx_xdsl.TensorDescriptor.from_tensor
    tiles = tile(a, [128, 256]), tile(b, [256, 256]), tile(c, [128, 256])
    product = a.astype(np.float64) @ b
    # After all passes: there the memory is laid out, and what does not fit is refused.
    verdict = judged(aliased, 1, *tiles, 2, M=128, N=256, K=256, stage="ttgir", expected={"c": (c, product)})
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    `reuse_group(...)` relates, `set_buffer_overlap` says for which region. Each allocation stands in the tree
    once.
    ///

    /// details | See it
    `tlx map FILE.py:KERNEL` shows who has which bytes.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
