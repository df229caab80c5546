"""A Hopper matrix product on its way through the compiler: look at the module after each pass, change the IR, go on, run it.

marimo edit notebooks/walk_a_kernel.py      as a notebook
python notebooks/walk_a_kernel.py           from top to bottom, without a browser
"""

import marimo

app = marimo.App(width="full", app_title="tlx_xdsl: walk a kernel through the passes")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import tlx_xdsl
    import tlx_xdsl.language as tl
    import tlx_xdsl.language.tlx as tlx

    return mo, np, tl, tlx, tlx_xdsl


@app.cell
def _(mo):
    mo.md("""
    # Walk a kernel through the passes

    The kernel below multiplies two matrices on Hopper: one task loads tiles through TMA into a ring of buffers, the
    other one multiplies them with wgmma. The tile of the result is staged in the memory of the ring, which is dead by
    then: `storage_alias_spec` says so, and a pass lays it out.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def product(a_desc, b_desc, c_desc, K, TILE: tl.constexpr, STAGES: tl.constexpr):
        off_m, off_n = tl.program_id(0) * TILE, tl.program_id(1) * TILE
        steps = tl.cdiv(K, TILE)
        storage = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
        a = tlx.local_alloc((TILE, TILE), tl.float16, STAGES, reuse=storage)
        b = tlx.local_alloc((TILE, TILE), tl.float16, STAGES, reuse=storage)
        c = tlx.local_alloc((TILE, TILE), tl.float16, 1, reuse=storage)
        ring = tlx.reuse_group(
            tlx.reuse_group(a, group_size=STAGES),
            tlx.reuse_group(b, group_size=STAGES),
            group_type=tlx.reuse_group_type.distinct,
        )
        storage.set_buffer_overlap(tlx.reuse_group(ring, c, group_type=tlx.reuse_group_type.shared))
        full, empty = tlx.alloc_barriers(STAGES), tlx.alloc_barriers(STAGES)

        with tlx.async_tasks():
            with tlx.async_task("default"):  # loads
                for k in range(steps):
                    slot = k % STAGES
                    tlx.barrier_wait(empty[slot], (k // STAGES) & 1 ^ 1)
                    tlx.barrier_expect_bytes(full[slot], 2 * TILE * TILE * 2)
                    tlx.async_descriptor_load(a_desc, a[slot], [off_m, k * TILE], full[slot])
                    tlx.async_descriptor_load(b_desc, b[slot], [k * TILE, off_n], full[slot])
            with tlx.async_task(num_warps=4):  # multiplies
                acc = tl.zeros((TILE, TILE), tl.float32)
                for k in range(steps):
                    slot = k % STAGES
                    tlx.barrier_wait(full[slot], (k // STAGES) & 1)
                    acc = tlx.async_dot(a[slot], b[slot], acc)
                    acc = tlx.async_dot_wait(0, acc)
                    tlx.barrier_arrive(empty[slot])
                tlx.local_store(c[0], acc.to(tl.float16))
                tlx.fence_async_shared()
                tlx.async_descriptor_store(c_desc, c[0], [off_m, off_n])
                tlx.async_descriptor_store_wait(0)

    tile_type = "tensordesc<fp16[64, 64]>"
    signature = {"a_desc": tile_type, "b_desc": tile_type, "c_desc": tile_type, "K": "i32"}
    constexprs = {"TILE": 64, "STAGES": 2}
    return constexprs, product, signature


@app.cell
def _(mo):
    mo.md("""
    ## The passes

    `first_step` is what the frontend makes. `finish()` runs every pass; each step knows what it has changed. The passes
    that change nothing of this kernel are counted below the table.
    """)
    return


@app.cell
def _(constexprs, mo, product, signature, tlx_xdsl):
    frontend = tlx_xdsl.first_step(product, signature, constexprs)
    last = frontend.finish()
    changing = [step for step in last.path if step.changes() != "nothing"]
    rows = [
        {"step": step.name, "operations": step.operations.total(), "what it changed": step.changes()}
        for step in changing
    ]
    idle = len(last.path) - len(changing)
    mo.vstack([mo.ui.table(rows, selection=None), mo.md(f"{idle} more passes change nothing")])
    return frontend, last


@app.cell
def _(frontend, mo):
    chosen_pass = mo.ui.dropdown(frontend.remaining, value="tlx-storage-alias-lowering", label="module after")
    chosen_pass
    return (chosen_pass,)


@app.cell
def _(chosen_pass, frontend, mo):
    step = frontend.to(chosen_pass.value)
    step.show_diff()
    return (step,)


@app.cell
def _(mo):
    mo.md("""
    Point at a line: what belongs to it on the other side lights up. The storage map is below the module.
    """)
    return


@app.cell
def _(step):
    step
    return


@app.cell
def _(mo):
    mo.md("""
    ## Layouts

    After the last pass tensors have layouts. The accumulator is where wgmma leaves it; C is stored in rows.
    """)
    return


@app.cell
def _(last, tlx_xdsl):
    tlx_xdsl.show(last.module(), title="layouts", layouts=["acc", "c"])
    return


@app.cell
def _(mo):
    mo.md("""
    ## Change the IR and go on

    The text below is the module after the pass that you chose. What you change goes through the passes that are
    left; what is wrong with it is reported at its line.
    """)
    return


@app.cell
def _(mo, step):
    editor = mo.ui.code_editor(step.text, language="javascript", min_height=300)
    editor
    return (editor,)


@app.cell
def _(editor):
    edited_text = editor.value
    return (edited_text,)


@app.cell
def _(edited_text, mo, step, tlx_xdsl):
    try:
        edited = step.edited(edited_text)
        changed = edited.finish()
        difference = edited.show_diff()
    except tlx_xdsl.CompilationError as error:
        changed, difference = None, mo.md(f"```\n{error}\n```")
    difference
    return (changed,)


@app.cell
def _(mo):
    mo.md("""
    ## Run it

    The interpreter runs every step: the frontend's, the last one, and the one that was edited. They should agree.
    """)
    return


@app.cell
def _(changed, frontend, last, mo, np, tlx_xdsl):
    def error_of(step, size=128, depth=192):
        """Run a step on random matrices; the largest error against numpy, or what the interpreter has to say."""
        random = np.random.default_rng(0)
        a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((size, depth), (depth, size)))
        c = np.full((size, size), np.nan, np.float16)
        tiles = [tlx_xdsl.TensorDescriptor.from_tensor(each, [64, 64]) for each in (a, b, c)]
        try:
            run = step.interpret((size // 64, size // 64), [*tiles, depth])
        except tlx_xdsl.CompilationError as error:
            return str(error)
        error = np.abs(c.astype(np.float32) - a.astype(np.float32) @ b.astype(np.float32)).max()
        return f"largest error {error:.3f}, {run.turns} turns"

    runs = {"frontend": error_of(frontend), "last pass": error_of(last)}
    if changed is not None:
        runs["edited"] = error_of(changed)
    mo.ui.table([{"step": name, "run": result} for name, result in runs.items()], selection=None)
    return (runs,)


@app.cell
def _(mo):
    mo.md("""
    ## To the GPU's code

    Stock Triton takes the last step's text from here. This needs Triton, but no GPU.
    """)
    return


@app.cell
def _(constexprs, mo, product, signature, tlx_xdsl):
    from tlx_xdsl.backend import BackendOptions, compile_ttgir, installed_triton_version

    triton = installed_triton_version()
    if triton is None:
        binary = None
        shown = mo.md("Triton is not installed here: `pip install tlx-xdsl[nvidia]`, on Linux.")
    else:
        final = tlx_xdsl.first_step(product, signature, constexprs, triton_version=triton).finish()
        shown = binary = compile_ttgir(final.ttgir, BackendOptions("sm_90a"))
    shown
    return (binary,)


if __name__ == "__main__":
    app.run()
