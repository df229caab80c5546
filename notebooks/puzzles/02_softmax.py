"""Puzzle 2: softmax of rows. Reductions, and numbers that do not overflow.

marimo edit notebooks/puzzles/02_softmax.py      as a notebook
python notebooks/puzzles/02_softmax.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 2: softmax")


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
    # 2. Softmax

    Each program takes a row of `x`, with `columns` elements, in a block of `BLOCK` elements: blocks have powers of two as
    their sizes, so a part of it is masked out.

    The kernel below computes `exp(x)` and stops. Divide by the sum of the row. Then look at the numbers: `exp(89)` is more than
    a float32 can hold, and the rows have larger ones. Which number can you subtract from a row without changing its softmax?

    You need `tl.max(block, axis)`, `tl.sum(block, axis)`, and `tl.load(..., other=...)`, which says what masked elements are.
    """)
    return


@app.cell
def _(tl, tlx_xdsl):
    @tlx_xdsl.jit
    def softmax(x, y, columns, BLOCK: tl.constexpr):
        row, at = tl.program_id(0), tl.arange(0, BLOCK)
        inside = at < columns
        values = tl.load(x + row * columns + at, mask=inside)
        powers = tl.exp(values)
        # Your code: no power may overflow, and each row adds up to 1.
        tl.store(y + row * columns + at, powers, mask=inside)

    return (softmax,)


@app.cell
def _(judged, np, settled, softmax):
    x = (np.random.default_rng(0).standard_normal((8, 100)) * 50).astype(np.float32)
    x[1::2] -= 400
    y = np.empty_like(x)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    verdict = judged(softmax, 8, x, y, 100, BLOCK=128, expected={"y": (y, powers / powers.sum(1, keepdims=True))})
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    Subtract the maximum of the row: all powers are then at most 1, and one of them is 1.
    ///

    /// details | Zeros, or NaN?
    Masked elements without `other=` are 0, here and on a GPU, and half of the rows are below it. Which value leaves
    both a maximum and a sum of powers as they are?
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
