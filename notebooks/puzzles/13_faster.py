"""Puzzle 13: a warp-specialised matrix product that is right, and slow.

marimo edit notebooks/puzzles/13_faster.py      as a notebook
python notebooks/puzzles/13_faster.py           prints the verdict; status 1 until it is solved
"""

import marimo

app = marimo.App(width="medium", app_title="Puzzle 13: faster")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import tlx_xdsl
    import tlx_xdsl.language as tl
    import tlx_xdsl.language.tlx as tlx
    from tlx_xdsl.runtime.answers import Verdict, judged, settled

    return Verdict, judged, mo, np, settled, tl, tlx, tlx_xdsl


@app.cell
def _(mo):
    mo.md("""
    # 13. A faster specialised kernel

    One task loads, one multiplies: as `tlx warp-specialize` writes them (`docs/warp-specialize.md`). The numbers are right, but the
    ring has a single slot: a load begins when a product ends, and the tensor cores wait for it.

    The check predicts the cycles of a launch by the clock (`docs/clock.md`) and wants two thirds of them. It needs stock Triton, whose PTX
    the clock reads, and no GPU. `STAGES` is 3 there.

    Both tasks need the slot of step `k`, and its phase: how often has this slot been used before?
    """)
    return


@app.cell
def _(tl, tlx, tlx_xdsl):
    @tlx_xdsl.jit
    def faster(a, b, c, STEPS, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STAGES: tl.constexpr):
        a_tiles = tlx.local_alloc((M, K), tl.float16, STAGES)
        b_tiles = tlx.local_alloc((K, N), tl.float16, STAGES)
        c_tile = tlx.local_alloc((M, N), tl.float16, 1)
        full, empty = tlx.alloc_barriers(STAGES), tlx.alloc_barriers(STAGES)
        with tlx.async_tasks():
            with tlx.async_task("default"):
                for k in range(STEPS):
                    # Your code: another slot, another phase.
                    slot, phase = 0, k & 1
                    tlx.barrier_wait(empty[slot], phase ^ 1)
                    tlx.barrier_expect_bytes(full[slot], (M + N) * K * 2)
                    tlx.async_descriptor_load(a, a_tiles[slot], [0, k * K], full[slot])
                    tlx.async_descriptor_load(b, b_tiles[slot], [k * K, 0], full[slot])
            with tlx.async_task(num_warps=4):
                acc = tl.zeros((M, N), tl.float32)
                for k in range(STEPS):
                    # Your code: the same here.
                    slot, phase = 0, k & 1
                    tlx.barrier_wait(full[slot], phase)
                    acc = tlx.async_dot(a_tiles[slot], b_tiles[slot], acc)
                    acc = tlx.async_dot_wait(0, acc)
                    tlx.barrier_arrive(empty[slot])
                tlx.local_store(c_tile[0], acc.to(tl.float16))
                tlx.fence_async_shared()
                tlx.async_descriptor_store(c, c_tile[0], [0, 0])
                tlx.async_descriptor_store_wait(0)

    return (faster,)


@app.cell
def _(Verdict, faster, judged, np, settled, tlx_xdsl):
    STEPS, GIVEN = 32, 61_000
    rng = np.random.default_rng(0)
    a, b = (
        rng.standard_normal((64, 64 * STEPS)).astype(np.float16),
        rng.standard_normal((64 * STEPS, 128)).astype(np.float16),
    )
    c = np.empty((64, 128), np.float16)
    tile = tlx_xdsl.TensorDescriptor.from_tensor
    tiles = tile(a, [64, 64]), tile(b, [64, 128]), tile(c, [64, 128])
    sizes = {"M": 64, "N": 128, "K": 64, "STAGES": 3}
    verdict = judged(faster, 1, *tiles, STEPS, **sizes, expected={"c": (c, a.astype(np.float64) @ b)}, tolerance=2e-3)
    if verdict:
        try:
            cycles = faster.predict(1, *tiles, STEPS, **sizes).cycles
            said = f"{cycles:,.0f} cycles, the kernel as it was given takes {GIVEN:,}, and two thirds are wanted"
            hint = (
                ""
                if cycles <= GIVEN * 2 / 3
                else ": does a load begin before the product of the step before has ended?"
            )
            verdict = Verdict(cycles <= GIVEN * 2 / 3, f"{verdict}\n{said}{hint}")
        except tlx_xdsl.CompilationError as error:
            verdict = Verdict(False, f"right, and how fast can't be said: {error.message}")
    settled(verdict, __file__)
    return (verdict,)


@app.cell
def _(mo):
    mo.md("""
    /// details | Hint
    Step `k` uses slot `k % STAGES`, for the `k // STAGES`-th time.
    ///

    /// details | See it
    `faster.timeline(...)` with the arguments of the check is a page: who works when. `faster.why_slow(...)` says it in words.
    ///
    """)
    return


if __name__ == "__main__":
    app.run()
