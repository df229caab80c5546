"""Puzzle 9: two CTAs share a row. Shared memory of another CTA.

marimo edit notebooks/puzzles/09_cluster.py      as a notebook
python notebooks/puzzles/09_cluster.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 9: cluster")


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
    # 9. A cluster

    Each row of `x` is spread over two CTAs (thread blocks) of a **cluster**, half in each, and is divided by its sum. Each CTA sums up
    its half and sends the sum to the other one's shared memory: `async_remote_shmem_store(buffer, value, rank, barrier)` writes there,
    and its bytes complete the mbarrier of that CTA.

    The kernel reads the other's sum without knowing that it has come. The barrier is there: say what it is to expect, and wait for it.

    You need `tlx.barrier_expect_bytes(barrier, bytes)` and `tlx.barrier_wait(barrier, parity)`.
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def cluster(x, y, COLUMNS: tl.constexpr):
        rank = tlx.cluster_cta_rank()
        at = tl.arange(0, COLUMNS)
        other = tlx.local_alloc((1,), tl.float32, 1)
        there = tlx.alloc_barriers(1)
        # Your code: four bytes will come.
        tlx.fence_mbarrier_init_cluster()
        tlx.cluster_barrier()
        half = tl.load(x + tl.program_id(0) * COLUMNS + at)
        mine = tl.sum(half, 0)
        tlx.async_remote_shmem_store(other[0], tl.full((1,), mine, tl.float32), rank ^ 1, there[0])
        # Your code: they have come.
        total = mine + tl.sum(tlx.local_load(other[0]), 0)
        tl.store(y + tl.program_id(0) * COLUMNS + at, half / total)

    return (cluster,)


@app.cell
def _(cluster, judged, np, settled):
    x = np.abs(np.random.default_rng(0).standard_normal((2, 2, 64))).astype(np.float32)
    y = np.empty_like(x)
    right = x / x.sum((1, 2), keepdims=True)
    verdict = judged(cluster, 4, x, y, COLUMNS=64, cluster=(2, 1, 1), expected={"y": (y, right)})
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    Both lines name `there[0]`, which is each CTA's own barrier; the first phase has parity 0.
    ///

    /// details | Why `cluster_barrier`?
    A CTA's barrier must be initialised before another CTA reaches it. `fence_mbarrier_init_cluster` and
    `cluster_barrier` say so.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
