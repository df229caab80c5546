"""A stand-in for the clock, which notes what it is asked, and kernels to ask about."""

from __future__ import annotations

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.timing.predict import Prediction
from tlx_xdsl.timing.timeline import Place, Span, Timeline, Track


class StandIn:
    """Takes the place of `predict`; `cycles` is a number, or computes one from what is asked."""

    def __init__(self, cycles=100_000.0):
        self.cycles = cycles
        self.asked = []
        self.notes = []

    def __call__(self, text, grid, args, **options):
        self.asked.append({"text": text, "grid": grid, "args": args, **options})
        cycles = self.cycles(self.asked[-1]) if callable(self.cycles) else self.cycles
        timeline = Timeline(options["kernel"], options["chip"], "predicted", hertz=options.get("hertz") or 2e9)
        timeline.notes = list(self.notes)
        if options["timeline"]:
            timeline.tracks = [Track("warp 0", "warp", name) for _, _, name in options["tasks"]]
            timeline.spans = [Span(0, 0.0, 10.0, "work", "add", 0)]
            timeline.places = [Place("kernel.py", 3)]
            timeline.end = 10.0
        return Prediction(options["chip"], cycles, timeline, 0.0, "latency")


@tlx_xdsl.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@tlx_xdsl.jit
def tasks(src_desc, dst_desc, TILES: tl.constexpr, SLOTS: tl.constexpr):
    buffers = tlx.local_alloc((64, 64), tl.float16, SLOTS)
    full = tlx.alloc_barriers(SLOTS)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for t in range(TILES):
                tlx.barrier_expect_bytes(full[t % SLOTS], 64 * 64 * 2)
                tlx.async_descriptor_load(src_desc, buffers[t % SLOTS], [t * 64, 0], full[t % SLOTS])
        with tlx.async_task(num_warps=1):
            tlx.barrier_wait(full[0], 0)
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(full[0], 0)
            tlx.async_descriptor_store(dst_desc, buffers[0], [0, 0])
            tlx.async_descriptor_store_wait(0)
