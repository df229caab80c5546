"""Kernels of several ranks, compiled for Hopper with stock Triton: nothing spills, and what the PTX says."""

import re
from dataclasses import replace

import numpy as np
import pytest

import tlx_xdsl
from tests.unit import volume
from tests.unit.kernels.references import DTYPES
from tlx_xdsl.kernels.comm import collectives, exchange, products
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization
from tlx_xdsl.runtime.driver.host_values import typed
from tlx_xdsl.runtime.ranks.arguments import of_ranks

pytestmark = pytest.mark.backend

BF16 = DTYPES["bf16"]


SHARED_BY_TASKS = 64
"""Bytes of values that ptxas keeps in local memory: stored at the kernel's head, and loaded once by each task."""


def compiled(launch, world):
    """The kernel that a GPU of `world` would get: the launch is one of simulated ranks."""
    (first, *_) = of_ranks({**launch.arguments, **launch.constexprs}, world, 1)
    found = typed(launch.kernel.source, first)
    return compile_kernel(launch.kernel, Specialization(found.signature, found.constexprs, "sm_90a", launch.num_warps))


def prepared(function, world, shapes, *options):
    tensors = [[np.zeros(shape, BF16) for _ in range(world)] for shape in shapes]
    return function.prepare((*tensors, None), (tlx_xdsl.SimulatedRanks(world), *options)).launches


def check(result, registers, spilled=0):
    resources = result.resources
    assert max(resources.spill_store_bytes, resources.stack_bytes) <= spilled
    assert resources.registers <= registers
    assert result.warnings == ()


COLLECTIVES = [
    (collectives.ALL_REDUCE, ("one_shot",)),
    (collectives.ALL_REDUCE, ("two_shot",)),
    (collectives.REDUCE_SCATTER, ()),
    (collectives.ALL_GATHER, ()),
]


@pytest.mark.skipif(not volume.is_full(), reason="at full volume")
@pytest.mark.parametrize(("function", "options"), COLLECTIVES)
@pytest.mark.parametrize("world", [2, 4, 8])
def test_collectives(function, options, world):
    """All threads of a multiprocessor may be resident; 16 bytes move at a time; signals reach other GPUs."""
    (launch,) = prepared(function, world, [(world * 4096,)], *options)
    result = compiled(launch, world)
    check(result, 128 if world == 8 else 64)
    assert re.search(r"ld\.global\.v4\.b32", result.ptx)
    assert re.search(r"st\.global\.v4\.b32", result.ptx)
    assert not re.search(r"(ld|st)\.global\.(v2\.)?b16", result.ptx)
    assert fenced_signals_of(result.ptx, "add")
    assert "multimem" not in result.ptx


@pytest.mark.skipif(not volume.is_full(), reason="at full volume")
@pytest.mark.parametrize("name", ["all_reduce", "gemm_reduce_scatter", "all_gather_gemm"])
def test_a_limit_of_waiting(name):
    """Threads read the time, and leave; in a kernel with tasks the launch ends."""
    function, shapes, options = {
        "all_reduce": (collectives.ALL_REDUCE, [(4 * 4096,)], ("two_shot",)),
        "gemm_reduce_scatter": (products.GEMM_REDUCE_SCATTER, [(512, 64), (64, 256)], (None,)),
        "all_gather_gemm": (products.ALL_GATHER_GEMM, [(128, 64), (64, 256)], (None,)),
    }[name]
    (launch,) = prepared(function, 4, shapes, *options)
    result = compiled(replace(launch, constexprs={**launch.constexprs, "LIMIT": 10**9}), 4)
    check(result, 168, 0 if name == "all_reduce" else SHARED_BY_TASKS)
    assert "%globaltimer" in result.ptx
    assert ("exit;" if name == "all_reduce" else "trap;") in result.ptx


@pytest.mark.skipif(not volume.is_full(), reason="at full volume")
def test_exchange():
    x = [np.zeros((64, 256), BF16) for _ in range(4)]
    chosen, weights = [np.zeros((64, 2), np.int32)] * 4, [np.zeros((64, 2), np.float32)] * 4
    made = exchange.Exchange(tlx_xdsl.SimulatedRanks(4), tokens=64, width=256, choices=2, experts=4, like=x)
    sent = exchange.DISPATCH.prepare((x, chosen, made.places), (made.ranks, made)).launches
    y = [np.zeros((4, 128, 256), BF16)] * 4
    for launch in (
        *sent,
        *exchange.COMBINE.prepare((y, weights, chosen, made.places, None), (made.ranks, made)).launches,
    ):
        check(compiled(launch, 4), 128)


WIDE = [(8, 256), (4, 256), (3, 256), (2, 256), (4, 128)]


SMALL = products.ProductConfig(64, 32, 64, stages=2, part_n=16, buffers=2, pingpong=True)


def signals_of(ptx: str) -> list[str]:
    """The additions that release to other GPUs; Triton 3.6 has `atom` where later versions have `red`."""
    return re.findall(r"(?:red|atom)\.global\.(?:sys\.release|release\.sys)\.add\.u64", ptx)


def fenced_signals_of(ptx: str, operation: str) -> list[str]:
    """Relaxed signals to other GPUs that follow a fence: one for all of them, where each release would wait."""
    _, _, rest = ptx.partition("fence.acq_rel.sys")
    return re.findall(rf"(?:red|atom)\.global\.(?:sys\.relaxed|relaxed\.sys)\.{operation}\.[bu]64", rest)


@pytest.mark.parametrize(
    ("world", "columns", "config"), [(*each, None) for each in WIDE] if volume.is_full() else [(2, 32, SMALL)]
)
def test_gemm_reduce_scatter(world, columns, config):
    (launch,) = prepared(products.GEMM_REDUCE_SCATTER, world, [(128 * world, 64), (64, columns)], config)
    result = compiled(launch, world)
    check(result, 168 if config is None else 255, SHARED_BY_TASKS)
    # Bulk copies to memory of its own; before a tile is handed over their writes are waited for, not their reads.
    assert "cp.async.bulk.global.shared::cta.bulk_group" in result.ptx
    assert re.search(r"cp\.async\.bulk\.wait_group\s+0;", result.ptx)
    assert "fence.proxy.async.global" in result.ptx
    assert signals_of(result.ptx)


@pytest.mark.skipif(not volume.is_full(), reason="at full volume")
@pytest.mark.parametrize(("world", "columns"), WIDE)
def test_all_gather_gemm(world, columns):
    (launch,) = prepared(products.ALL_GATHER_GEMM, world, [(128, 64), (64, columns)], None)
    result = compiled(launch, world)
    check(result, 168, SHARED_BY_TASKS)
    # Threads copy to other GPUs, 16 bytes at a time: TMA would have the loads of the product wait.
    assert "cp.async.bulk.global.shared::cta.bulk_group" not in result.ptx
    assert re.search(r"st\.global\.v4\.b32", result.ptx)
    assert fenced_signals_of(result.ptx, "add")
