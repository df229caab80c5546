"""Puzzle 10: flash attention. A softmax whose maximum is not known yet.

marimo edit notebooks/puzzles/10_attention.py      as a notebook
python notebooks/puzzles/10_attention.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 10: attention")


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
    # 10. Attention

    `softmax(q @ k.T * scale) @ v` without the matrix of scores: keys come in blocks of `KEYS`, and each row keeps the highest score so
    far, the sum of its powers, and the output so far. The powers are relative to the highest score. When a block has a higher
    one, what was summed up before is too large by `exp(old - new)`.

    The kernel below forgets that. Rescale the sum and the output, and mind where.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def attention(q, k, v, out, LENGTH, scale, ROWS: tl.constexpr, KEYS: tl.constexpr, DIM: tl.constexpr):
        row = tl.program_id(0) * ROWS
        q_tile = tlx.local_alloc((ROWS, DIM), tl.float16, 1)
        k_tile = tlx.local_alloc((KEYS, DIM), tl.float16, 1)
        v_tile = tlx.local_alloc((KEYS, DIM), tl.float16, 1)
        q_full, full = tlx.alloc_barriers(1), tlx.alloc_barriers(1)
        tlx.barrier_expect_bytes(q_full[0], ROWS * DIM * 2)
        tlx.async_descriptor_load(q, q_tile[0], [row, 0], q_full[0])
        tlx.barrier_wait(q_full[0], 0)
        highest = tl.full((ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        acc = tl.zeros((ROWS, DIM), tl.float32)
        for n in range(LENGTH // KEYS):
            tlx.barrier_expect_bytes(full[0], 2 * KEYS * DIM * 2)
            tlx.async_descriptor_load(k, k_tile[0], [n * KEYS, 0], full[0])
            tlx.async_descriptor_load(v, v_tile[0], [n * KEYS, 0], full[0])
            tlx.barrier_wait(full[0], n & 1)
            scores = tlx.async_dot(q_tile[0], tlx.local_trans(k_tile[0]))
            scores = tlx.async_dot_wait(0, scores) * scale
            higher = tl.maximum(highest, tl.max(scores, 1))
            p = tl.exp(scores - higher[:, None])
            # Your code: what was summed up before is relative to `highest`, not to `higher`.
            total = total + tl.sum(p, 1)
            acc = tlx.async_dot(p.to(tl.float16), v_tile[0], acc)
            acc = tlx.async_dot_wait(0, acc)
            highest = higher
        tlx.local_store(q_tile[0], (acc / total[:, None]).to(tl.float16))
        tlx.fence_async_shared()
        tlx.async_descriptor_store(out, q_tile[0], [row, 0])
        tlx.async_descriptor_store_wait(0)

    return (attention,)


@app.cell
def _(attention, judged, np, settled, tlx_xdsl):
    q, k, v = np.random.default_rng(0).standard_normal((3, 128, 64)).astype(np.float16)
    out, scale = np.empty_like(q), 0.5
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * scale
    powers = np.exp(scores - scores.max(1, keepdims=True))
    right = powers / powers.sum(1, keepdims=True) @ v
    tile = tlx_xdsl.TensorDescriptor.from_tensor
    tiles = [tile(each, [64, 64]) for each in (q, k, v, out)]
    verdict = judged(
        attention, 2, *tiles, 128, scale, ROWS=64, KEYS=64, DIM=64, expected={"out": (out, right)}, tolerance=3e-3
    )
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    `rescale = tl.exp(highest - higher)`, one number for each row. `acc` has two axes: `rescale[:, None]`.
    ///

    /// details | The first block
    `highest` is -inf then, so the factor is 0, and it meets sums that are 0.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
