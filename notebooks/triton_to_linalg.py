"""A softmax on its way to linalg: what is known about each access, the module after each pass, and its numbers.

marimo edit notebooks/triton_to_linalg.py      as a notebook
python notebooks/triton_to_linalg.py           from top to bottom, without a browser
"""

import marimo

app = marimo.App(width="full", app_title="tlx_xdsl: Triton to linalg")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import tlx_xdsl
    import tlx_xdsl.language as tl
    from tlx_xdsl.cpu.linalg.access_report import access_facts
    from tlx_xdsl.cpu.runtime.linalg import linalg_text, plain_module
    from tlx_xdsl.runtime.driver.compilation import Specialization

    return Specialization, access_facts, linalg_text, mo, np, plain_module, tl, tlx_xdsl


@app.cell
def _(mo):
    mo.md("""
    # Triton to linalg

    Each program of the kernel below normalises some rows; `rows` says which. Columns after the last are masked.
    """)
    return


@app.cell
def _(Specialization, tl, tlx_xdsl):
    @tlx_xdsl.jit
    def softmax(x_ptr, rows_ptr, out_ptr, columns, R: tl.constexpr, C: tl.constexpr):
        row = tl.load(rows_ptr + tl.program_id(0) * R + tl.arange(0, R))
        column = tl.arange(0, C)
        inside = column[None, :] < columns
        x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=-float("inf"))
        power = tl.exp(x - tl.max(x, 1)[:, None])
        result = power / tl.sum(power, 1)[:, None]
        at = tl.program_id(0) * R + tl.arange(0, R)
        tl.store(out_ptr + at[:, None] * columns + column[None, :], result, mask=inside)

    signature = {"x_ptr": "*fp32", "rows_ptr": "*i32", "out_ptr": "*fp32", "columns": "i32"}
    specialization = Specialization(signature, {"R": 4, "C": 64})
    return softmax, specialization


@app.cell
def _(mo):
    mo.md("""
    ## What is known about each access

    The load of `x` gathers rows: along dimension 0 its address is what another load has given, so a loop visits the
    rows, and copies each as one piece.
    """)
    return


@app.cell
def _(access_facts, mo, plain_module, softmax, specialization):
    facts = [
        {"access": each.op.name, "grade": each.grade.value, "elements": f"{each.base} + {each.address}",
         "where": each.mask, "because": each.reason}
        for each in access_facts(plain_module(softmax.source, specialization))
    ]  # fmt: skip
    mo.ui.table(facts, selection=None)
    return (facts,)


@app.cell
def _(mo):
    mo.md("""
    ## The passes

    Choose one to see the module after it.
    """)
    return


@app.cell
def _(linalg_text, softmax, specialization):
    stages = {}
    text = linalg_text(softmax.source, specialization, on_stage=stages.__setitem__)
    return stages, text


@app.cell
def _(mo, stages):
    chosen = mo.ui.dropdown(list(stages), value="linalg-lower-accesses", label="module after")
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
    ## The numbers

    The last module runs in the interpreter, on memory where an access beside an array is a fault.
    """)
    return


@app.cell
def _(np, text, tlx_xdsl):
    x = np.random.default_rng(0).standard_normal((10, 50)).astype(np.float32)
    rows = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32)
    out = np.zeros((8, 50), np.float32)
    tlx_xdsl.interpret_text(text, 2, [x.reshape(-1), rows, out.reshape(-1), 50])
    power = np.exp(x[rows] - x[rows].max(1, keepdims=True))
    error = float(np.abs(out - power / power.sum(1, keepdims=True)).max())
    f"the largest error: {error:.1e}"
    return (error,)


if __name__ == "__main__":
    app.run()
