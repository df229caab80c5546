"""Traces of the repository's kernels, from the PTX that stock Triton makes of them, against what a full run counts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.gallery.synchronisation.example_runs import attention, gemm
from tests.unit import volume
from tests.unit.ptx.compiled import compiled_once, matmul, matrices, softmax
from tests.unit.timing.replays import check, events_of
from tlx_xdsl.ptx.launch import run_program
from tlx_xdsl.ptx.traffic import LineTraffic
from tlx_xdsl.runtime.simulate import ptx_stage
from tlx_xdsl.runtime.simulate.interpret import interpret
from tlx_xdsl.timing.record import record

pytestmark = pytest.mark.backend


@dataclass
class Caught(Exception):
    """A launch, caught before it runs."""

    program: Any
    grid: Any
    values: Any
    options: dict[str, Any]


def caught(run: Callable[[], Any]) -> Caught:
    """The launch of PTX that a call comes to."""

    def catch(program: Any, grid: Any, args: Any, **options: Any) -> Any:
        taken = ("num_warps", "cluster", "shared", "scratch", "reachable")
        raise Caught(program, grid, args, {name: options[name] for name in taken})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ptx_stage, "compiled", compiled_once)
        patch.setattr(ptx_stage, "run_program", catch)
        with pytest.raises(Caught) as found:
            run()
    return found.value


def products(target: str) -> Any:
    a, b = matrices()
    c = np.zeros((128, 64), np.float32)
    options = {"stage": "ptx", "target": target, "mends": True, "num_stages": 3}
    return interpret(matmul, (2, 1), a, b, c, 128, 64, 160, BLOCK=64, DEPTH=32, options=options)


def rows() -> Any:
    x = np.random.default_rng(0).standard_normal((3, 700)).astype(np.float32)
    return interpret(softmax, 3, x, np.zeros_like(x), 700, 700, BLOCK=1024, stage="ptx")


LAUNCHES: dict[str, Callable[[], Any]] = {
    "gemm of specialised warps": lambda: gemm("hopper_gemm_ws.py", 128, 128, 320, BLOCK_N=128, NUM_STAGES=2).run(
        stage="ptx"
    ),
    "ping-pong attention": lambda: attention(
        "hopper_attention_pingpong.py", 1, 256, head_dim=64, causal=True, programs=1
    ).run(stage="ptx"),
    "rows": rows,
    "copies by threads": lambda: products("sm_80"),
    "gemm on Blackwell": lambda: gemm("blackwell_gemm_ws.py", 128, 256, 128, programs=1).run(stage="ptx"),
}


@cache
def launch(name: str) -> Caught:
    return caught(LAUNCHES[name])


SHORT = ["gemm of specialised warps", "rows", "copies by threads"]


@pytest.mark.parametrize("name", LAUNCHES if volume.is_full() else SHORT)
def test_events_are_what_a_full_run_counts(name):
    found = launch(name)
    count = int(np.prod(found.grid))
    before = [np.asanyarray(getattr(each, "base", each)).copy() for each in found.values]
    traces, facts = record(found.program, found.grid, found.values, clusters=range(count), **found.options)
    for each, kept in zip(found.values, before, strict=True):
        np.testing.assert_array_equal(np.asanyarray(getattr(each, "base", each)), kept)
    for trace in traces:
        assert trace.whole
        check(trace, found.program)
    assert facts.shared_bytes == found.program.symbols.shared_bytes + found.options["shared"]
    done = run_program(found.program, found.grid, found.values, races=False, profile=True, **found.options)
    counted = LineTraffic()
    for each in done.traffic.values():
        counted.add(each)
    events = [event for trace in traces for event in events_of(trace)]
    # A warp has a quarter of the rows of `wgmma`; products of `mma.sync` are no events.
    share = {"wgmma": 4, "mma5": 1}
    products = sum(2 * int(np.prod(each.shape)) // share[each.kind] for each in events if each.kind in share)
    assert products == (counted.products if name != "copies by threads" else 0)
    bulk = [each for each in events if each.kind in ("tma_load", "tma_store")]
    assert sum(each.size for each in bulk) == counted.copied
    threads = [each for each in events if each.kind in ("load", "store", "copy", "atomic")]
    assert sum(each.sectors for each in threads) == counted.sectors.taken
    shared = [each for each in events if each.kind in ("shared", "copy")]
    assert sum(each.count for each in shared) == counted.shared.taken


def test_a_product_that_reads_bulk_copies():
    """The ring of the GEMM: each load ends at a phase of its slot, for which the consumers wait before a product."""
    found = launch("gemm of specialised warps")
    (trace,), _ = record(found.program, found.grid, found.values, **found.options)
    loads = events_of(trace, "tma_load")
    assert {each.multicast for each in loads} == {1}
    assert all(each.lines and each.place >= 0 and len(each.points) == 1 for each in loads)
    ends = {each.points for each in loads}
    waits = {each.points for warp in trace.warps[4:] for step in warp.steps for each in step.events
             if each.kind == "wait"}  # fmt: skip
    assert ends <= waits
    assert {(each.shape, each.element, each.in_registers) for each in events_of(trace, "wgmma")} == {
        ((64, 128, 16), "f16", False)
    }
