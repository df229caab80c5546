"""Puzzle 3: a matrix product. Blocks of two axes, a loop, the tensor cores.

marimo edit notebooks/puzzles/03_matmul.py      as a notebook
python notebooks/puzzles/03_matmul.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 3: matmul")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import tlx_xdsl
    import tlx_xdsl.language as tl
    from tlx_xdsl.runtime.answers import judged, settled

    return judged, mo, np, settled, tl, tlx_xdsl


@app.cell
def _(mo):
    mo.md("""
    # 3. Matrix product

    A program computes a tile of `c = a @ b`, `TILE` rows and columns of it. Its rows of `a` and columns of `b` are longer than a
    tile: it takes them `TILE` elements of K at a time, and adds the products up in `acc`, in float32.

    The kernel below takes the first step only. Make it a loop.

    You need `for k in range(0, K, TILE)` and `tl.dot(a_tile, b_tile, acc)`, which is `acc + a_tile @ b_tile`.
    """)
    return


@app.cell
def _(tl, tlx_xdsl):
    @tlx_xdsl.jit
    def matmul(a, b, c, N, K, TILE: tl.constexpr):
        rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
        columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
        acc = tl.zeros((TILE, TILE), tl.float32)
        inner = tl.arange(0, TILE)
        a_tile = tl.load(a + rows[:, None] * K + inner[None, :])
        b_tile = tl.load(b + inner[:, None] * N + columns[None, :])
        acc = tl.dot(a_tile, b_tile, acc)
        # Your code: all steps of K, not only the first one.
        tl.store(c + rows[:, None] * N + columns[None, :], acc)

    return (matmul,)


@app.cell
def _(judged, matmul, np, settled):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((32, 48)).astype(np.float16), rng.standard_normal((48, 32)).astype(np.float16)
    c = np.empty((32, 32), np.float32)
    verdict = judged(matmul, (2, 2), a, b, c, 32, 48, TILE=16, expected={"c": (c, a.astype(np.float64) @ b)})
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    `inner` is the only thing that differs from step to step: `k + tl.arange(0, TILE)`.
    ///

    /// details | Why float32?
    A sum of 48 products in float16 loses digits with each addition. The tensor cores multiply 16-bit numbers
    and add in 32 bits at the same speed.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
