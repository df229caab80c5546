"""Puzzle 1: add two arrays. Programs, blocks and masks.

marimo edit notebooks/puzzles/01_add.py      as a notebook
python notebooks/puzzles/01_add.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 1: add")


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
    # 1. Add

    A kernel is run by many **programs**. Each does the same to another part of the data, a **block** of `BLOCK` elements, and
    knows which by `tl.program_id(0)`.

    `z = x + y` for `n` elements. The kernel forgets that the last block reaches beyond the end of the arrays. Complete it, and read
    what the check below says.

    You need `tl.load(pointer, mask=...)` and `tl.store(pointer, value, mask=...)`.
    """)
    return


@app.cell
def _(tl, tlx_xdsl):
    @tlx_xdsl.jit
    def add(x, y, z, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        total = tl.load(x + at) + tl.load(y + at)
        # Your code: the loads and the store need a mask.
        tl.store(z + at, total)

    return (add,)


@app.cell
def _(add, judged, np, settled):
    n = 1000
    x, y = np.random.default_rng(0).standard_normal((2, n)).astype(np.float32)
    z = np.empty_like(x)
    verdict = judged(add, 4, x, y, z, n, BLOCK=256, expected={"z": (z, x + y)})
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    `at < n` is a block of booleans: true where an element exists.
    ///

    /// details | Why a mask?
    `n` need not be a multiple of `BLOCK`. What lies beyond the end of an array is other memory or none: a GPU
    reads rubbish or faults, the interpreter names the element.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
