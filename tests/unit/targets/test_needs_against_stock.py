"""Needs that the table accepts compile with stock Triton; for what it refuses, stock Triton or ptxas fails."""

import pytest

from tests.unit import volume
from tests.versions import INSTALLED, OLDEST, RELEASE, release
from tlx_xdsl.backend import BackendError, BackendOptions, compile_ttgir
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.targets import TARGETS, Target, targets_of
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.nvidia.check_target import CheckTargetPass

pytestmark = pytest.mark.backend

MODULE = """
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#reduced = #ttg.slice<{dim = 1, parent = #row}>
#rows = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = \
[1, 4], order = [1, 0]}>}>
#da = #ttg.dot_op<{opIdx = 0, parent = #b2}>
#db = #ttg.dot_op<{opIdx = 1, parent = #b2}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#n0 = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#n8 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#tm = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:CAPABILITY", \
"ttg.threads-per-warp" = 32 : i32} {
tt.func public @k(%p: !tt.ptr<f32>, %h: !tt.ptr<f16>, %e: !tt.ptr<f8E4M3FN>, %g: !tt.ptr<f8E5M2>, %i: i32, %s: i64,
                  %pi: !tt.ptr<i32>, %d: !tt.tensordesc<64x64xf16, #n16>, %d1: !tt.tensordesc<1x64xf16, #n0>) {
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
BODY
  tt.return
}
}
"""

BARRIER = "!ttg.memdesc<1xi64, #s, #smem, mutable>"
A_BARRIER = f"""
  %bar = ttg.local_alloc : () -> {BARRIER}
  ttng.init_barrier %bar, 1 : {BARRIER}
"""
TILE = "!ttg.memdesc<64x64xf16, #n16, #smem, mutable>"
A_TILE = f"  %tile = ttg.local_alloc : () -> {TILE}\n"
DESCRIPTOR = "!tt.tensordesc<64x64xf16, #n16>"
ROW = "!tt.tensordesc<1x64xf16, #n0>"
ROWS = "  %rows = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #rows>\n"
ACC = "!ttg.memdesc<128x64xf32, #tm, #tmem, mutable>"
AN_ACC = f"  %acc = ttng.tmem_alloc : () -> {ACC}\n"
POINTER = """
  %raw = builtin.unrealized_conversion_cast %bar : \
!ttg.memdesc<1xi64, #s, #smem, mutable> to !llvm.struct<(ptr<3>, i32)>
  %address = llvm.extractvalue %raw[0] : !llvm.struct<(ptr<3>, i32)>
"""


def casts(argument: str, source: str, result: str, rounding: str = "") -> str:
    """Load, convert and store 128 numbers."""
    where = {"f32": "p", "f16": "h", "f8E4M3FN": "e", "f8E5M2": "g"}
    return f"""
  %from = tt.splat %{argument} : !tt.ptr<{source}> -> tensor<128x!tt.ptr<{source}>, #b>
  %x = tt.load %from : tensor<128x!tt.ptr<{source}>, #b>
  %y = tt.fp_to_fp %x{rounding} : tensor<128x{source}, #b> -> tensor<128x{result}, #b>
  %to = tt.splat %{where[result]} : !tt.ptr<{result}> -> tensor<128x!tt.ptr<{result}>, #b>
  tt.store %to, %y : tensor<128x!tt.ptr<{result}>, #b>
"""


def dot(argument: str, element: str) -> str:
    """Multiply a loaded 64 x 64 tile by itself."""
    return f"""
  %from = tt.splat %{argument} : !tt.ptr<{element}> -> tensor<64x64x!tt.ptr<{element}>, #b2>
  %x = tt.load %from : tensor<64x64x!tt.ptr<{element}>, #b2>
  %l = ttg.convert_layout %x : tensor<64x64x{element}, #b2> -> tensor<64x64x{element}, #da>
  %r = ttg.convert_layout %x : tensor<64x64x{element}, #b2> -> tensor<64x64x{element}, #db>
  %z = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #b2>
  %m = tt.dot %l, %r, %z : tensor<64x64x{element}, #da> * tensor<64x64x{element}, #db> -> tensor<64x64xf32, #b2>
  %to = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #b2>
  tt.store %to, %m : tensor<64x64x!tt.ptr<f32>, #b2>
"""


def specialized(attributes: str) -> str:
    return f"""
  ttg.warp_specialize(%p){attributes}
  default {{
    ttg.warp_yield
  }}
  partition0(%q: !tt.ptr<f32>) num_warps(4) {{
    %one = arith.constant 1.000000e+00 : f32
    tt.store %q, %one : !tt.ptr<f32>
    ttg.warp_return
  }} : (!tt.ptr<f32>) -> ()
"""


def tcgen05(element: str, layout: str, accumulator: str) -> str:
    acc = f"!ttg.memdesc<128x64x{accumulator}, #tm, #tmem, mutable>"
    a, b = (f"!ttg.memdesc<{rows}x64x{element}, #{layout}, #smem, mutable>" for rows in (128, 64))
    return f"""
  %acc = ttng.tmem_alloc : () -> {acc}
  %a = ttg.local_alloc : () -> {a}
  %rhs = ttg.local_alloc : () -> {b}
  ttng.tc_gen5_mma %a, %rhs, %acc, %true, %true, %bar[%true] {{is_async}} : {a}, {b}, {acc}, {BARRIER}
"""


PROBES = {
    "init and inval": A_BARRIER + f"  ttng.inval_barrier %bar : {BARRIER}",
    "one arrival": A_BARRIER + f"  ttng.arrive_barrier %bar, 1 : {BARRIER}",
    "several arrivals": A_BARRIER + f"  ttng.arrive_barrier %bar, 2 : {BARRIER}",
    "wait": A_BARRIER + f"  ttng.wait_barrier %bar, %i, %true : {BARRIER}",
    "expect": A_BARRIER + f"  ttng.barrier_expect %bar, 64, %true : {BARRIER}",
    "arrival of copies": A_BARRIER + f"  ttng.async_copy_mbarrier_arrive %bar : {BARRIER}",
    "fence": "  ttng.fence_async_shared {bCluster = false}",
    "warp specialisation": specialized(""),
    "registers": specialized(" attributes {requestedRegisters = array<i32: 24>}"),
    "e4m3 to f16": casts("e", "f8E4M3FN", "f16"),
    "f32 to e4m3": casts("p", "f32", "f8E4M3FN", ", rounding = rtne"),
    "e5m2 to f16": casts("g", "f8E5M2", "f16"),
    "f32 to e5m2": casts("p", "f32", "f8E5M2", ", rounding = rtne"),
    "dot of f16": dot("h", "f16"),
    "dot of e4m3": dot("e", "f8E4M3FN"),
    "dot of e5m2": dot("g", "f8E5M2"),
    "dependent launch": "  tt.grid_dependency_wait",
    "TMA load": A_BARRIER
    + A_TILE
    + f"  ttng.async_tma_copy_global_to_local %d[%i, %i] %tile, %bar, %true : {DESCRIPTOR}, {BARRIER} -> {TILE}",
    "TMA store": A_TILE + f"  ttng.async_tma_copy_local_to_global %d[%i, %i] %tile : {DESCRIPTOR}, {TILE}\n"
    "  ttng.async_tma_store_wait {pendings = 0 : i32}",
    "TMA reduction": A_TILE + f"  ttng.async_tma_reduce add, %d[%i, %i] %tile : {DESCRIPTOR}, {TILE}",
    "TMA gather": A_BARRIER + ROWS + "  %tile = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #n0, #smem, mutable>\n"
    f"  ttng.async_tma_gather %d1[%rows, %i] %tile, %bar, %true : {ROW}, tensor<32xi32, #rows>,"
    f" i32, {BARRIER}, !ttg.memdesc<32x64xf16, #n0, #smem, mutable>, i1",
    "TMA scatter": ROWS + "  %tile = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #n0, #smem, mutable>\n"
    f"  ttng.async_tma_scatter %d1[%rows, %i] %tile : {ROW}, tensor<32xi32, #rows>, i32,"
    " !ttg.memdesc<32x64xf16, #n0, #smem, mutable>",
    "load through a descriptor": """
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<64x64xf16, #n16> -> tensor<64x64xf16, #b2>
  %to = tt.splat %h : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #b2>
  tt.store %to, %x : tensor<64x64x!tt.ptr<f16>, #b2>
""",
    "wgmma": """
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  %z = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
  %m = ttng.warp_group_dot %a, %a, %z {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #n16, #smem, mutable> * \
!ttg.memdesc<64x64xf16, #n16, #smem, mutable> -> tensor<64x64xf32, #mma>
  %to = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #mma>
  tt.store %to, %m : tensor<64x64x!tt.ptr<f32>, #mma>
""",
    "tensor memory": AN_ACC
    + f"""
  %x = ttng.tmem_load %acc : {ACC} -> tensor<128x64xf32, #row>
  %to = tt.splat %p : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #row>
  tt.store %to, %x : tensor<128x64x!tt.ptr<f32>, #row>
""",
    "tcgen05 of f16": A_BARRIER + tcgen05("f16", "n16", "f32"),
    "tcgen05 of int8": A_BARRIER + tcgen05("i8", "n8", "i32"),
    "tcgen05.commit": A_BARRIER + f"  ttng.tc_gen5_commit %bar : {BARRIER}",
    "cluster rank": """
  %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
  tt.store %pi, %rank : !tt.ptr<i32>
""",
    "cluster barrier": "  nvvm.cluster.arrive {aligned}\n  nvvm.cluster.wait {aligned}",
    "fence of mbarriers": "  nvvm.fence.mbarrier.init",
    "mapa": A_BARRIER + POINTER + "  %there = nvvm.mapa %address, %i : !llvm.ptr<3> -> !llvm.ptr<7>\n"
    '  nvvm.inline_ptx "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [$0];" ro(%there : !llvm.ptr<7>)\n'
    f"  ttng.inval_barrier %bar : {BARRIER}",
    "elect": """
  %one = nvvm.elect.sync -> i1
  %number = arith.extui %one : i1 to i32
  tt.store %pi, %number : !tt.ptr<i32>
""",
    "setmaxregister": "  nvvm.setmaxregister decrease 24",
    "griddepcontrol": "  nvvm.griddepcontrol wait",
    "fence.proxy": "  nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}",
}

SINCE = {
    "dependent launch": (3, 9),
    "tcgen05 of int8": (3, 8),
    "reducing load": (3, 7),
    "launch control": (3, 8),
    "packed arithmetic": (3, 8),
}
"""The first Triton that has the operation."""

PROBES |= {
    "reducing load": AN_ACC
    + f"""
  %x, %least = ttng.tmem_load %acc {{NaN = false, abs = false, redOp = #ttng.redOp<min>}} : {ACC} -> \
tensor<128x64xf32, #row>, tensor<128xf32, #reduced>
  %to = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #reduced>
  tt.store %to, %least : tensor<128x!tt.ptr<f32>, #reduced>
""",
    "launch control": A_BARRIER
    + f"""
  %response = ttg.local_alloc : () -> !ttg.memdesc<2xi64, #s, #smem, mutable>
  ttng.clc_try_cancel %response, %bar : !ttg.memdesc<2xi64, #s, #smem, mutable>, {BARRIER}
  %result = ttng.clc_load_result %response : !ttg.memdesc<2xi64, #s, #smem, mutable> -> i128
  %x = ttng.clc_get_program_id %result, x : i128 -> i32
  tt.store %pi, %x : !tt.ptr<i32>
""",
    "packed arithmetic": """
  %to = tt.splat %p : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #row>
  %x = tt.load %to : tensor<128x64x!tt.ptr<f32>, #row>
  %y = ttng.packed_arith add %x, %x : (tensor<128x64xf32, #row>, tensor<128x64xf32, #row>) -> tensor<128x64xf32, #row>
  tt.store %to, %y : tensor<128x64x!tt.ptr<f32>, #row>
""",
}


def module_text(body: str, target: Target) -> str:
    return MODULE.replace("CAPABILITY", str(target.capability)).replace("BODY", body)


def refused(body: str, target: Target) -> str | None:
    """Return the message with which the pass refuses a module, or None."""
    try:
        CheckTargetPass().apply(make_context(), parse_module(module_text(body, target), filename="kernel.mlir"))
    except CompilationError as error:
        return error.message
    return None


def targets_for(body: str) -> list[Target]:
    """All targets of the installed Triton, or those around the first change from refused to accepted."""
    if volume.is_full():
        return list(targets_of(RELEASE))
    first = next(index for index, target in enumerate(TARGETS) if refused(body, target) is None)
    return list(TARGETS[max(first - 1, 0) : first + 1])


@pytest.mark.parametrize("name", PROBES)
def test_refused_is_what_fails(name: str):
    version = INSTALLED
    assert version is not None
    profile = profile_for(version)
    if SINCE.get(name, release(OLDEST)) > RELEASE:
        pytest.skip(f"Triton {version} has no such operation")
    body = PROBES[name]
    for target in targets_for(body):
        module = parse_module(module_text(body, target), filename="kernel.mlir")
        verify_module(module)
        failure = None
        text = print_module(module, profile=profile)
        try:
            compile_ttgir(text, BackendOptions(target=target.name), source_name="kernel.ttgir")
        except (BackendError, CompilationError) as error:
            failure = str(error)
        said = refused(body, target)
        assert (failure is None) == (said is None), f"for {target.name} we say {said}, stock Triton says {failure}"
        assert said is None or said.endswith(f"; target is {target.name}")
