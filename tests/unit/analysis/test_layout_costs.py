"""Accesses to buffers, conversions, and requests to global memory."""

from tlx_xdsl.analysis.global_costs import global_accesses
from tlx_xdsl.analysis.layout_costs import FunctionBuffers, buffers, conversions
from tlx_xdsl.dialects.tt import FuncOp
from tlx_xdsl.layouts.conversion_cost import ConversionKind
from tlx_xdsl.text.parser import parse_module

HEADER = """\
#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.slice<{dim = 0, parent = #rows}>
#turned = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]],
  lane = [[1, 0], [2, 0], [0, 8], [0, 16], [0, 32]], warp = [[4, 0], [8, 0]], block = []}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #flat, #smem, mutable>
!ring = !ttg.memdesc<2x64x64xf16, #flat, #smem, mutable>
!turned = !ttg.memdesc<64x64xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>,
  #smem, mutable>
!barrier = !ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #smem, mutable>
!remote_barrier = !ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>,
  #tlx.shared_cluster_memory, mutable>
!remote = !ttg.memdesc<64x64xf16, #flat, #tlx.shared_cluster_memory, mutable>
"""


def module(body: str, arguments: str = "%x: tensor<64x64xf16, #rows>, %i: i32", capability: int = 90):
    attributes = f'{{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:{capability}"}}'
    return parse_module(
        f"{HEADER}module attributes {attributes} {{\ntt.func @f({arguments}) {{\n{body}\ntt.return\n}}\n}}\n"
    )


THROUGH_A_RING = """\
  %ring = ttg.local_alloc : () -> !ring
  %unused = ttg.local_alloc : () -> !ring
  %one = ttg.memdesc_index %ring[%i] : !ring -> !tile
  ttg.local_store %x, %one : tensor<64x64xf16, #rows> -> !tile loc("k.py":3:1)
  %same = ttg.memdesc_index %ring[%i] : !ring -> !tile
  %y = ttg.local_load %same : !tile -> tensor<64x64xf16, #rows> loc("k.py":4:1)
  %t = ttg.memdesc_trans %same {order = array<i32: 1, 0>} : !tile -> !turned
  %z = ttg.local_load %t : !turned -> tensor<64x64xf16, #rows> loc("k.py":5:1)"""


def test_accesses_through_views_are_those_of_the_buffer():
    (ring,) = buffers(module(THROUGH_A_RING))
    assert ring.name == "ring"
    assert [(access.line, access.does) for access in ring.accesses] == [
        (3, "threads write"),
        (4, "threads read"),
        (5, "threads read"),
    ]
    write, read, turned = (access.cost for access in ring.accesses)
    assert (write.width_bits, write.ways) == (read.width_bits, read.ways) == (128, 1)
    assert (turned.width_bits, turned.ways) == (16, 8)


def test_an_initial_value_is_a_write():
    (buffer,) = buffers(module("%tile = ttg.local_alloc %x : (tensor<64x64xf16, #rows>) -> !tile"))
    assert [access.does for access in buffer.accesses] == ["threads write"]


BULK = """\
  %tile = ttg.local_alloc : () -> !tile
  %other = ttg.local_alloc : () -> !tile
  %full = ttg.local_alloc : () -> !barrier
  ttng.init_barrier %full, 1 : !barrier
  tlx.async_tma_load %d[%i, %i] %tile, %full, %yes multicast %i : !tt.tensordesc<64x64xf16>, !barrier -> !tile
  tlx.async_bulk_load %p, %other, %i, %full : !tt.ptr<f16> -> !tile, !barrier
  tlx.async_bulk_store %tile, %p, %i : !tile -> !tt.ptr<f16>
  %there = tlx.map_to_remote %other, %i : !tile -> !remote
  %done = tlx.map_to_remote %full, %i : !barrier -> !remote_barrier
  tlx.async_remote_copy %tile, %there, %done : !tile -> !remote, !remote_barrier"""


def test_copies_by_hardware_are_accesses():
    arguments = "%d: !tt.tensordesc<64x64xf16>, %p: !tt.ptr<f16>, %i: i32, %yes: i1"
    tile, other = buffers(module(BULK, arguments))
    assert [access.does for access in tile.accesses] == ["TMA writes", "a bulk copy reads", "a bulk copy reads"]
    assert [access.does for access in other.accesses] == ["a bulk copy writes", "a bulk copy writes"]


def test_stmatrix_is_for_hopper_and_later():
    body = "%tile = ttg.local_alloc %x : (tensor<64x64xf16, #mma>) -> !tile"
    mma = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>"
    found = {}
    for capability in (80, 90):
        text = body.replace("#mma", mma)
        (buffer,) = buffers(module(text, f"%x: tensor<64x64xf16, {mma}>", capability))
        found[capability] = buffer.accesses[0].cost.instruction
    assert found == {80: "vector", 90: "stmatrix"}


def test_conversions_know_their_loops():
    convert = "ttg.convert_layout %x : tensor<64x64xf16, #rows> -> tensor<64x64xf16, #turned>"
    body = f"""\
  %a = {convert}
  scf.for %k = %i to %i step %i : i32 {{
    %b = {convert}
    %c = ttg.convert_layout %x : tensor<64x64xf16, #rows> -> tensor<64x64xf16, #rows>
  }}"""
    outside, inside, nothing = conversions(module(body))
    assert (outside.loops, inside.loops, nothing.loops) == (0, 1, 1)
    assert outside.cost == inside.cost
    assert outside.cost.kind is ConversionKind.IN_WARP
    assert nothing.cost.kind is ConversionKind.IN_THREAD


def test_vectors_rest_on_what_is_known_of_pointers_and_masks():
    arguments = "%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16>, %n: i32"
    body = """\
  %index = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #row>
  %known = tt.splat %p : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>, #row>
  %unknown = tt.splat %q : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>, #row>
  %a = tt.addptr %known, %index : tensor<64x!tt.ptr<f16>, #row>, tensor<64xi32, #row>
  %b = tt.addptr %unknown, %index : tensor<64x!tt.ptr<f16>, #row>, tensor<64xi32, #row>
  %limit = tt.splat %n : i32 -> tensor<64xi32, #row>
  %mask = arith.cmpi slt, %index, %limit : tensor<64xi32, #row>
  %x = tt.load %a : tensor<64x!tt.ptr<f16>, #row>
  %y = tt.load %b : tensor<64x!tt.ptr<f16>, #row>
  tt.store %a, %x, %mask : tensor<64x!tt.ptr<f16>, #row>"""
    aligned, unaligned, masked = global_accesses(module(body, arguments))
    assert [each.cost.width_bits for each in (aligned, unaligned, masked)] == [128, 16, 16]
    assert str(aligned) == "load: 128 bits per lane, 4 sectors per request, 100% of their bytes used"
    assert str(masked).startswith("store: 16 bits per lane")


def test_a_view_of_what_a_loop_carries_leads_to_the_buffer():
    body = """\
  %ring = ttg.local_alloc : () -> !ring
  %last = scf.for %k = %i to %i step %i iter_args(%carried = %ring) -> (!ring) : i32 {
    %one = ttg.memdesc_index %carried[%i] : !ring -> !tile
    scf.yield %carried : !ring
  }"""
    text = module(body)
    (func,) = (op for op in text.walk() if isinstance(op, FuncOp))
    values = {value.name_hint: value for op in func.walk() for value in op.results}
    known = FunctionBuffers(func)
    assert known.root(values["one"]) is known.root(values["last"]) is values["ring"]


def test_a_view_of_one_of_two_buffers_leads_to_neither():
    body = """\
  %a = ttg.local_alloc : () -> !ring
  %b = ttg.local_alloc : () -> !ring
  %which = arith.cmpi slt, %i, %i : i32
  %either = arith.select %which, %a, %b : !ring
  %one = ttg.memdesc_index %either[%i] : !ring -> !tile"""
    (func,) = (op for op in module(body).walk() if isinstance(op, FuncOp))
    values = {value.name_hint: value for op in func.walk() for value in op.results}
    assert FunctionBuffers(func).root(values["one"]) is values["either"]
