"""Puzzle 14: a kernel for Tenstorrent's cores: three threads and their circular buffers.

marimo edit notebooks/puzzles/14_tensix.py      as a notebook
python notebooks/puzzles/14_tensix.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 14: Tensix")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    import tlx_xdsl.language.ttl as ttl

    from tlx_xdsl.errors import CompilationError
    from tlx_xdsl.runtime.answers import Verdict, difference, settled
    from tlx_xdsl.ttl.runtime import run

    return CompilationError, Verdict, difference, mo, np, run, settled, ttl


@app.cell
def _(mo):
    mo.md("""
    # 14. A Tensix core

    TTL (`docs/ttl.md`) is another language, for another machine. A core has three threads: one reads tiles of 32 x 32 from memory, one
    computes, one writes. They hand on blocks of tiles through circular buffers: `reserve` a block and fill it, `wait` for one and read
    it; at the end of `with` it is handed on, or given back.

    `out = a * b + c`, one row of tiles after the other. `c` is a single row of tiles, for all rows: it is read once, and its block is
    to be kept while all rows are computed. Write the compute thread.

    You need `with buffer.wait() as block:`, `with out_cb.reserve() as out_block:` and `out_block.store(...)`.
    """)
    return


@app.cell
def _(ttl):
    @ttl.kernel(grid=(1, 1))
    def tensix(a, b, c, out):
        a_cb = ttl.make_circular_buffer_like(a, shape=(1, 2), buffer_factor=2)
        b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2), buffer_factor=2)
        c_cb = ttl.make_circular_buffer_like(c, shape=(1, 2), buffer_factor=1)
        out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2), buffer_factor=2)

        @ttl.datamovement()
        def read():
            with c_cb.reserve() as c_block:
                ttl.copy(c[0:1, 0:2], c_block).wait()
            for row in range(3):
                with a_cb.reserve() as a_block, b_cb.reserve() as b_block:
                    ttl.copy(a[row : row + 1, 0:2], a_block).wait()
                    ttl.copy(b[row : row + 1, 0:2], b_block).wait()

        @ttl.compute()
        def compute():
            # Your code.
            pass

        @ttl.datamovement()
        def write():
            for row in range(3):
                with out_cb.wait() as out_block:
                    ttl.copy(out_block, out[row : row + 1, 0:2]).wait()

    return (tensix,)


@app.cell
def _(CompilationError, Verdict, difference, np, run, settled, tensix):
    a, b = np.random.default_rng(0).standard_normal((2, 96, 64)).astype(np.float32)
    c = np.random.default_rng(1).standard_normal((32, 64)).astype(np.float32)
    out = np.full_like(a, np.nan)
    try:
        for schedule in ("round-robin", "adversarial"):
            out.fill(np.nan)
            run(tensix, a, b, c, out, schedule=schedule)
        said = difference("out", out, a * b + np.tile(c, (3, 1)), 1e-5)
    except CompilationError as error:
        said = str(error).replace(__file__, "14_tensix.py")
    verdict = Verdict(said is None, said or "right")
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    Two `with`, one in the other: the outer one holds `c_block` while a loop runs over three rows.
    ///

    /// details | What if I wait for c in the loop?
    Its block would be given back after the first row, and the second row waits for one that no thread fills.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
