"""Small kernels for the operations that no kernel of the galleries runs, each ready to be run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tests.unit.interpreter.operations import (
    test_atomics,
    test_device_descriptors,
    test_tensor_memory_shift,
    test_tensormaps,
)
from tests.unit.interpreter.operations.test_tensor_memory import REDUCE
from tests.unit.interpreter.small_texts import pointers, run
from tests.unit.interpreter.synchronisation import test_bulk, test_clc, test_cluster, test_votes
from tests.unit.transforms.nvidia import test_lowered_instructions
from tlx_xdsl.runtime.simulate.interpret import interpret, interpret_text

HOPPER = {"target": "sm_90a", "jobs": 1}
BLACKWELL = {"target": "sm_100a", "jobs": 1}
PAIR = {"cluster": (2, 1, 1), **HOPPER}


@tlx_xdsl.jit
def hints(x_desc, x_ptr, y_ptr):
    """Give hints that move no data: prefetches, remarks on layouts, and the dependencies of grids."""
    tlx.async_descriptor_prefetch_tensor(x_desc, [0, 0])
    tlx.prefetch(x_desc, tensormap=True)
    tlx.prefetch(x_ptr)
    tl.extra.cuda.gdc_wait()
    i = tl.arange(0, 128)
    x = tl.load(x_ptr + i, volatile=True)
    tlx.dump_layout(x)
    tlx.assert_same_layout(x, x + 1)
    tl.device_assert(i >= 0, "never")
    tl.store(y_ptr + i, x)
    tl.extra.cuda.gdc_launch_dependents()


def _hints(stage: str) -> None:
    x, y = np.ones((8, 16), np.float32), np.zeros(128, np.float32)
    described = tlx_xdsl.TensorDescriptor.from_tensor(x, [8, 16])
    interpret(hints, 1, described, x.ravel(), y, stage=stage, **HOPPER)


def _bulk(stage: str) -> None:
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    interpret(test_bulk.double, 1, x, y, 512, 0, 512, "", stage=stage, **HOPPER)


def _launch_control(stage: str) -> None:
    times, owners = np.zeros(4, np.int32), np.zeros(4, np.int32)
    interpret(test_clc.count, 4, times, owners, 4, stage=stage, **BLACKWELL)


def _shift(stage: str) -> None:
    x = np.zeros((128, 16), np.float32)
    interpret(test_tensor_memory_shift.shift, 1, x, x.copy(), 16, tl.float32, 1, True, stage=stage, **BLACKWELL)


def _device_descriptors(stage: str) -> None:
    x = np.zeros((70, 56), np.float16)
    interpret(test_device_descriptors.through, 1, x, x.copy(), 70, 50, 56, "memory", stage=stage, **HOPPER)


def _votes(stage: str) -> None:
    if stage == "ttgir":
        x, _ = test_lowered_instructions.voters()
        interpret(test_lowered_instructions.votes, 1, x, np.zeros(257, np.int32), stage=stage, **HOPPER)


def _small_things(stage: str) -> None:
    x, out = np.arange(64, dtype=np.float32), np.full(1, -1, np.int64)
    interpret(test_lowered_instructions.small_things, 1, x, x.copy(), out, stage=stage, **HOPPER)


def _warp_barrier(stage: str) -> None:
    x = np.arange(128, dtype=np.float32)
    interpret(test_lowered_instructions.warp_barrier, 1, x, x.copy(), 1, stage=stage, **HOPPER)


def _lock(stage: str) -> None:
    interpret(test_atomics.lock_kernel, 3, np.zeros(1, np.int32), np.zeros(1, np.int32), 3, stage=stage, jobs=1)


@tlx_xdsl.jit
def signals(pad):
    """A counter that the program raises and waits for."""
    tlx.signal(pad, 1, 2)
    tlx.wait_signal(pad, 1, 2)


def _signals(stage: str) -> None:
    signals.interpret(1, np.zeros(2, np.int32), stage=stage, **HOPPER)


KERNELS: dict[str, Callable[[str], None]] = {
    "bulk copies": _bulk,
    "descriptors on the device": _device_descriptors,
    "hints": _hints,
    "launch control": _launch_control,
    "lock": _lock,
    "shift": _shift,
    "signals": _signals,
    "small things": _small_things,
    "votes": _votes,
    "warp barrier": _warp_barrier,
}
"""Kernels in TLX, which run at each stage."""


# Texts ---------------------------------------------------------------------------------------------------------------


def _text(arguments: str, body: str, *values: Any, **options: Any) -> Callable[[], None]:
    """Return a function that runs a text; arrays are copied, so that it can run again."""
    return lambda: run(
        arguments, body, [value.copy() if isinstance(value, np.ndarray) else value for value in values], **options
    )


BAR, TILE = "!ttg.memdesc<1xi64, #s, #smem, mutable>", "!ttg.memdesc<64xf32, #s, #smem, mutable>"
FLOATS, INTS = "tensor<64xf32, #b>", "tensor<64xi32, #b>"
SCATTERED = (
    pointers("x", "f32", 64, "xs") + pointers("at", "i32", 64, "is") + pointers("y", "f32", 64, "ys")
    + f"""
    %v = tt.load %xs : tensor<64x!tt.ptr<f32>, #b>
    %i = tt.load %is : tensor<64x!tt.ptr<i32>, #b>
    %buf = ttg.local_alloc %v : ({FLOATS}) -> {TILE}
    ttg.local_scatter %buf[%i], %v {{axis = 0 : i32}} : {TILE}, {INTS}, {FLOATS}
    %o = ttg.local_atomic_scatter_rmw fadd, %buf[%i], %v {{axis = 0 : i32}} : ({TILE}, {FLOATS}, {INTS}) -> {FLOATS}
    ttg.local_barrier
    gpu.barrier
    tlx.assert_same_layout_expected %v {{expected = #b}} : {FLOATS}
    %r = ttg.local_gather %buf[%i] {{axis = 0 : i32}} : {TILE}, {INTS} -> {FLOATS}
    tt.store %ys, %r : tensor<64x!tt.ptr<f32>, #b>"""
)  # fmt: skip
ROWS, TMA_TILE = "!tt.tensordesc<1x32xf32, #tma>", "!ttg.memdesc<32x32xf32, #tma, #smem, mutable>"
BLOCK = "!tt.tensordesc<32x32xf32, #tma>"
ROW_OFFSETS = (
    "tensor<32xi32, #ttg.slice<{dim = 0, parent = #ttg.blocked<"
    "{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>>"
)
BY_TMA = f"""
    %zero = arith.constant 0 : i32
    %true = arith.constant true
    %rows = tt.make_range {{end = 32 : i32, start = 0 : i32}} : {ROW_OFFSETS}
    %buf = ttg.local_alloc : () -> {TMA_TILE}
    %bar = ttg.local_alloc : () -> {BAR}
    ttng.init_barrier %bar, 1 : {BAR}
    ttng.barrier_expect %bar, 4096, %true : {BAR}
    ttng.async_tma_gather %x[%rows, %zero] %buf, %bar, %true
      : {ROWS}, {ROW_OFFSETS}, i32, {BAR}, {TMA_TILE}, i1
    ttng.wait_barrier %bar, %zero : {BAR}
    ttng.async_tma_scatter %y[%rows, %zero] %buf : {ROWS}, {ROW_OFFSETS}, i32, {TMA_TILE}
    ttng.async_tma_store_wait {{pendings = 0 : i32}}
    ttng.async_tma_reduce add, %z[%zero, %zero] %buf : {BLOCK}, {TMA_TILE}
    ttng.async_tma_store_wait {{pendings = 0 : i32}}"""
COPIED = pointers("x", "f32", 64, "xs") + f"""
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %buf = ttg.local_alloc : () -> {TILE}
    %bar = ttg.local_alloc : () -> {BAR}
    ttng.init_barrier %bar, 128 : {BAR}
    %t = ttg.async_copy_global_to_local %xs, %buf : tensor<64x!tt.ptr<f32>, #b> -> <64xf32, #s, #smem, mutable>
    ttng.async_copy_mbarrier_arrive %bar {{noIncrement}} : {BAR}
    ttng.wait_barrier %bar, %zero : {BAR}
    %r = ttg.local_load %buf : {TILE} -> {FLOATS}
    ttng.inval_barrier %bar : {BAR}
    ttg.local_dealloc %buf : {TILE}"""  # fmt: skip
THREADS = """
    nvvm.setmaxregister decrease 24
    nvvm.griddepcontrol wait
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    %ten = arith.constant 10 : i32
    %c = arith.cmpi slt, %n, %ten : i32
    llvm.intr.assume %c : i1
    %x = arith.constant 1.0 : f32
    %s = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (f32) -> f32
    ttg.warp_specialize()
    default {
      %i = arith.constant 1 : i32
      %j = arith.constant 2 : i32
      %t = arith.constant 256 : i32
      ttg.inline_asm "bar.sync 3;" {constraints = "", pure = false} : () -> ()
      nvvm.barrier
      nvvm.barrier id = %i number_of_threads = %t
      nvvm.barrier.arrive id = %j number_of_threads = %t
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      %i = arith.constant 1 : i32
      %j = arith.constant 2 : i32
      %t = arith.constant 256 : i32
      ttg.inline_asm "bar.sync 3;" {constraints = "", pure = false} : () -> ()
      nvvm.barrier id = %i number_of_threads = %t
      nvvm.barrier id = %j number_of_threads = %t
      ttg.warp_return
    } : () -> ()"""
CLUSTER = """
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func public @kernel() {
    ttng.fence_mbarrier_init_release_cluster
    nvvm.fence.mbarrier.init
    ttng.cluster_barrier {relaxed = true}
    ttng.cluster_barrier
    ttng.cluster_arrive {relaxed = 1 : i1}
    ttng.cluster_wait
    ttng.cluster_arrive {relaxed = 0 : i1}
    ttng.cluster_wait
    nvvm.cluster.arrive.relaxed
    nvvm.cluster.wait
    nvvm.cluster.arrive
    nvvm.cluster.wait
    %a = ttng.clc_try_cancel_sync : tensor<2xi64>
    tt.return
  }
}
"""

SWIZZLED = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"
ACCUMULATOR = "{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}"
COLUMNS = "#ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>"
HALVES = f"!ttg.memdesc<64x64xf16, {SWIZZLED}, #smem>"
MMA = f"tensor<64x64xf32, #ttg.nvidia_mma<{ACCUMULATOR}>>"
TMEM = f"!ttg.memdesc<64x64xf32, {COLUMNS}, #ttng.tensor_memory, mutable>"
SYNCHRONOUS = f"""
    %true = arith.constant true
    %false = arith.constant false
    %one = arith.constant dense<1.0> : tensor<64x64xf16, #b2>
    %zero = arith.constant dense<0.0> : {MMA}
    %a = ttg.local_alloc %one : (tensor<64x64xf16, #b2>) -> {HALVES}
    ttng.fence_async_shared {{bCluster = false}}
    %w = ttng.warp_group_dot %a, %a, %zero {{inputPrecision = 0 : i32}} : {HALVES} * {HALVES} -> {MMA}
    %d = ttng.tmem_alloc : () -> {TMEM}
    ttng.tc_gen5_mma %a, %a, %d, %false, %true : {HALVES}, {HALVES}, {TMEM}
    ttng.tc_gen5_mma %a, %a, %d, %true, %true : {HALVES}, {HALVES}, {TMEM}"""

_rows = np.arange(64, dtype=np.float32)
_matrix = np.ones((40, 32), np.float32)

TEXTS: dict[str, Callable[[], None]] = {
    "gather and scatter": _text(
        "%x: !tt.ptr<f32>, %at: !tt.ptr<i32>, %y: !tt.ptr<f32>", SCATTERED, _rows, np.arange(64, dtype=np.int32), _rows
    ),
    "gather by TMA": _text(
        f"%x: {ROWS}, %y: {ROWS}, %z: {BLOCK}", BY_TMA,
        *(tlx_xdsl.TensorDescriptor.from_tensor(_matrix, [rows, 32]) for rows in (1, 1, 32)),
    ),
    "stores that arrive": lambda: interpret_text(
        test_cluster.ST_ASYNC.format(ctas="", size=512, wait=test_cluster.WAIT), 1, [np.zeros(128, np.int32)], jobs=1
    ),
    "votes": lambda: interpret_text(
        test_votes.VOTE.format(layout=test_votes.BLOCKED.format(each=1, warps=4), warps=4), 1,
        [np.zeros(64, np.int32), np.zeros(64, np.int32)], jobs=1,
    ),
    "copies that arrive": _text("%x: !tt.ptr<f32>", COPIED, _rows),
    "synchronous MMAs": _text("", SYNCHRONOUS),
    "threads": _text("%n: i32", THREADS, 9),
    "cluster": lambda: interpret_text(CLUSTER, 2, [], cluster=(2, 1, 1), jobs=1),
    "tensor maps": _text(
        test_tensormaps.POINTERS, test_tensormaps.CREATE + test_tensormaps.FENCE + test_tensormaps.LOAD,
        np.ones((12, 64), np.float32), np.ones((8, 32), np.float32),
    ),
    "tensor memory": lambda: interpret_text(
        REDUCE.format(attributes="redOp = #ttng.redOp<min>"), 1,
        [np.ones((128, 8), np.float32), np.zeros(128, np.float32)], jobs=1,
    ),
}  # fmt: skip
"""Kernels as texts, for what passes and stock write."""
