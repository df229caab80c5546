"""Findings of `why_slow` about published performance bugs, each at its line, and about the twin without it."""

from __future__ import annotations

import linecache
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import tlx_xdsl
from examples import hopper_gemm_persistent_pingpong, hopper_gemm_ws
from tests.unit import volume
from tests.unit.runtime.clock import slow_kernels
from tests.unit.runtime.clock.stand_in import add
from tlx_xdsl.runtime.clock.kernel import configuration_of
from tlx_xdsl.runtime.clock.why_slow import deeper, why_slow
from tlx_xdsl.timing.findings import findings

pytestmark = pytest.mark.backend

needs_full_volume = pytest.mark.skipif(
    not volume.is_full_for_each_version(), reason="more kernels are compiled with TLX_TEST_VOLUME=full only"
)


def gemm(module, size, depth, grid=None, **constants):
    """A launch of an example: c[size, size] = a[size, depth] @ b[depth, size]."""
    compiled = module.TLX_COMPILE["matmul"]
    blocks = [[int(each) for each in kind.split("[")[1].strip("]>").split(",")]
              for kind in compiled["signature"].values() if kind.startswith("tensordesc")]  # fmt: skip
    shapes = (size, depth), (depth, size), (size, size)
    arrays = [tlx_xdsl.TensorDescriptor.from_tensor(np.empty(shape, np.float16), block)
              for shape, block in zip(shapes, blocks, strict=True)]  # fmt: skip
    named = {**compiled["constexprs"], **constants}
    programs = (size // named["BLOCK_M"]) * (size // named["BLOCK_N"])
    return configuration_of(module.matmul, grid or programs, (*arrays, size, size, depth), named, None)


def transpose(layout):
    x = np.empty((2112, 1024), np.float32)
    return configuration_of(slow_kernels.transpose, 2112, (x, x), {"TIMES": 32, "LAYOUT": layout}, None)


def found(configuration, word):
    """The diagnostics that contain a word, each with the text of its line."""
    said = [each for each in why_slow(configuration).diagnostics if word in each.message]
    for each in said:
        line = linecache.getline(each.location.filename, each.location.line).strip()
        yield SimpleNamespace(line=line, severity=each.severity, message=each.message, text=str(each))


def test_bank_conflicts_are_named_where_the_tile_is_read_by_columns():
    (conflict,) = found(transpose(slow_kernels.CONFLICTS), "bank conflicts")
    assert conflict.line == "values = 0.5 * tlx.local_load(tlx.local_trans(tile[0]))"
    assert conflict.severity == "warning"
    assert "slow_kernels.py:26:" in conflict.text
    assert "note: choose a layout of the buffer that spreads rows over the banks" in conflict.text
    assert not list(found(transpose(slow_kernels.SWIZZLED), "bank conflicts"))


def test_a_ring_with_one_stage_too_few_is_named_where_it_is_waited_for():
    (ring,) = found(gemm(hopper_gemm_ws, 1024, 2048, NUM_STAGES=2), "too shallow")
    assert ring.line == "tlx.barrier_wait(full[stage], (k // NUM_STAGES) & 1)"
    assert ring.severity == "warning"
    assert "with NUM_STAGES=3 the launch takes" in ring.message
    assert "note: choose NUM_STAGES=3 or more in the place of 2 (the ring is allocated in line 37)" in ring.text


@needs_full_volume
def test_a_ring_that_is_deep_enough_is_not():
    assert not list(found(gemm(hopper_gemm_ws, 1024, 2048, NUM_STAGES=4), "too shallow"))


def test_an_epilogue_that_serialises_is_named_where_it_stores():
    alone = findings(gemm(hopper_gemm_ws, 4096, 512).predict().evidence)
    (epilogue,) = [each for each in alone if each.kind == "epilogue"]
    line = linecache.getline(epilogue.at.filename, epilogue.at.line).strip()
    assert line == "tlx.async_descriptor_store(c_desc, c[half], [off_m + half * HALF_M, off_n])"
    assert epilogue.severity == "warning"
    assert epilogue.remedy.startswith("let other warps multiply meanwhile")
    # Each CTA begins with a ring that has no data.
    assert "prologue" in [each.kind for each in alone]


@needs_full_volume
def test_consumers_that_take_turns_have_no_such_epilogue():
    turns = findings(gemm(hopper_gemm_persistent_pingpong, 4096, 512, grid=132).predict().evidence)
    assert not {"epilogue", "prologue"} & {each.kind for each in turns}


def test_one_stage_more_is_what_adds_buffers_and_changes_no_shape():
    (ring,) = deeper(gemm(hopper_gemm_ws, 512, 512), is_pipelined=True)
    assert (ring.name, ring.stages, ring.allocated.line) == ("NUM_STAGES", 4, 37)
    assert ring.configuration.specialization.constexprs["NUM_STAGES"].value == 4
    x = np.zeros(64, np.float32)
    plain = configuration_of(add, 1, (x, x, x, 64), {"BLOCK": 64}, None)
    assert [(each.name, each.stages) for each in deeper(plain, is_pipelined=True)] == [("num_stages", 4)]
    assert not list(deeper(plain, is_pipelined=False))


def test_a_last_wave_that_is_nearly_empty_is_said_of_the_kernel():
    x = np.empty(1 << 23, np.float32)
    assert "the last of 2 waves has 64 of 2,112 CTAs" in str(add.why_slow(2112 + 64, x, x, x, x.size, BLOCK=1024))
    short = configuration_of(add, 2112 + 64, (x, x, x, x.size), {"BLOCK": 1024}, None)
    (wave,) = found(short, "waves")
    assert "the last of 2 waves has 64 of 2,112 CTAs" in wave.message
    assert wave.line == "@tlx_xdsl.jit"


def test_programs_that_are_too_short_are_said_of_the_kernel():
    x = np.empty(1 << 23, np.float32)
    short = configuration_of(add, 1 << 16, (x, x, x, x.size), {"BLOCK": 128, "num_warps": 1}, None)
    (starts,) = found(short, "goes to the start of the next")
    assert starts.severity == "warning"
    x = np.empty(1 << 26, np.float32)
    longer = configuration_of(add, 1 << 14, (x, x, x, x.size), {"BLOCK": 4096}, None)
    assert not list(found(longer, "goes to the start of the next"))
    # What memory limits has no remedy here.
    (memory,) = found(longer, "DRAM works")
    assert memory.severity == "remark"
    assert "tl.load" in memory.line


@cache
def follow(*, is_chain, buffers):
    """Return findings about loads by two waves of CTAs: kind, line, and a part of the text."""
    programs = 2 * 2112
    links = 128 + np.arange(128 * (programs + 32), dtype=np.int32)
    named = {"TIMES": 32, "IS_CHAIN": is_chain, "BUFFERS": buffers}
    evidence = configuration_of(slow_kernels.follow, programs, (links, links), named, None).predict().evidence
    return [each for each in findings(evidence) if each.kind in ("latency", "occupancy")]


def test_a_chain_of_loads_is_named_for_its_latency():
    (latency,) = follow(is_chain=True, buffers=1)
    assert latency.kind == "latency"
    assert latency.share > 0.8
    assert linecache.getline(latency.at.filename, latency.at.line).strip() == "found = tl.load(links + at)"
    assert latency.remedy.startswith("have more loads under way")
    assert not follow(is_chain=False, buffers=1)


def test_few_warps_are_named_with_what_limits_them():
    (few,) = follow(is_chain=True, buffers=200)
    assert few.kind == "occupancy"
    assert few.severity == "warning"
    assert few.message.endswith("a multiprocessor has only 8 of 64 warps to go on with, for their shared memory")
    (others,) = follow(is_chain=True, buffers=1)
    assert others.kind == "latency"
