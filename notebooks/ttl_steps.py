"""A TTL kernel on its way to C++: the module after each pass, what each core's memory holds, and three machines.

marimo edit notebooks/ttl_steps.py      as a notebook
python notebooks/ttl_steps.py           from top to bottom, without a browser
"""

import marimo

app = marimo.App(width="full", app_title="tlx_xdsl: TTL step by step")


@app.cell
def _():
    import marimo as mo
    import numpy as np
    import tlx_xdsl.language.ttl as ttl

    from tlx_xdsl.errors import CompilationError
    from tlx_xdsl.ttl.runtime import compile_kernel, run, specs_of

    return CompilationError, compile_kernel, mo, np, run, specs_of, ttl


@app.cell
def _(mo):
    mo.md("""
    # TTL, step by step

    A core has three threads here: one reads blocks of tiles into circular buffers, one computes, one writes.
    """)
    return


@app.cell
def _(ttl):
    @ttl.kernel(grid=(2, 1))
    def scaled_sum(a, b, out):
        a_cb = ttl.make_circular_buffer_like(a, shape=(1, 2), buffer_factor=2)
        b_cb = ttl.make_circular_buffer_like(b, shape=(1, 2), buffer_factor=2)
        out_cb = ttl.make_circular_buffer_like(out, shape=(1, 2), buffer_factor=2)

        @ttl.datamovement()
        def read():
            x, _ = ttl.core(dims=2)
            for row in range(2):
                with a_cb.reserve() as a_block, b_cb.reserve() as b_block:
                    ttl.copy(a[row : row + 1, 2 * x : 2 * x + 2], a_block).wait()
                    ttl.copy(b[row : row + 1, 2 * x : 2 * x + 2], b_block).wait()

        @ttl.compute()
        def compute():
            for _ in range(2):
                with a_cb.wait() as a_block, b_cb.wait() as b_block, out_cb.reserve() as out_block:
                    out_block.store(ttl.math.exp(a_block) + b_block * 2.0)

        @ttl.datamovement()
        def write():
            x, _ = ttl.core(dims=2)
            for row in range(2):
                with out_cb.wait() as out_block:
                    ttl.copy(out_block, out[row : row + 1, 2 * x : 2 * x + 2]).wait()

    return (scaled_sum,)


@app.cell
def _(compile_kernel, np, scaled_sum, specs_of):
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 64, 128)).astype(np.float32)
    stages = {}
    compiled = compile_kernel(scaled_sum, specs_of(scaled_sum, [a, b, a]), on_stage=stages.__setitem__)
    return a, b, compiled, stages


@app.cell
def _(mo):
    mo.md("""
    ## The passes

    Choose one to see the module after it.
    """)
    return


@app.cell
def _(mo, stages):
    chosen = mo.ui.dropdown(list(stages), value="ttl-bufferize", label="module after")
    chosen
    return (chosen,)


@app.cell
def _(chosen, mo, stages):
    shown = "\n".join(
        line.split(" loc(")[0] for line in stages[chosen.value].splitlines() if not line.startswith("#loc")
    )
    mo.md(f"```mlir\n{shown}\n```")
    return


@app.cell
def _(mo):
    mo.md("""
    ## The C++, and the memory of each core
    """)
    return


@app.cell
def _(compiled, mo):
    mo.accordion({name: mo.md(f"```cpp\n{text}\n```") for name, text in compiled.sources.items()})
    return


@app.cell
def _(compiled, mo):
    buffers = [
        {"buffer": each["index"], "address": each["address"], "bytes": each["bytes"]}
        for each in compiled.manifest["cbs"]
    ]
    mo.ui.table(buffers, selection=None)
    return (buffers,)


@app.cell
def _(mo):
    mo.md("""
    ## Three machines

    The meaning of the blocks, the calls of TT-Metalium with every step checked, and the C++ compiled by g++.
    """)
    return


@app.cell
def _(CompilationError, a, b, np, run, scaled_sum):
    expected = np.exp(a) + b * 2
    results = {}
    for machine in ("tensors", "ttkernel", "cpp"):
        out = np.full_like(a, np.nan)
        try:
            run(scaled_sum, a, b, out, machine=machine)
            results[machine] = f"largest error {np.abs(out - expected).max():.1e}"
        except CompilationError as error:
            # Without a C++ compiler the others still run.
            results[machine] = error.message
    results
    return (results,)


if __name__ == "__main__":
    app.run()
