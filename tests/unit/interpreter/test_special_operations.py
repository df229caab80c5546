"""Operations of `ttg`, `ttng`, `nvvm`, `gpu` and `llvm` that only some kernels have, in small texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tlx_xdsl.interpreter.faults import Deadlock, Fault
from tlx_xdsl.runtime.interpret import interpret_text

LAYOUTS = """
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#s2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#tma = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
"""


def run(arguments: str, body: str, values: Sequence[Any], grid: tuple[int, ...] = (1,), **options: Any) -> Any:
    """Run a kernel with these arguments and statements."""
    text = f"""{LAYOUTS}
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"}} {{
  tt.func public @kernel({arguments}) {{
    {body}
    tt.return
  }}
}}
"""
    return interpret_text(text, grid, list(values), **options)


def pointers(name: str, element: str, count: int, result: str) -> str:
    """Statements that make `result` the `count` pointers behind an argument."""
    return f"""
    %{result}_i = tt.make_range {{end = {count} : i32, start = 0 : i32}} : tensor<{count}xi32, #b>
    %{result}_s = tt.splat %{name} : !tt.ptr<{element}> -> tensor<{count}x!tt.ptr<{element}>, #b>
    %{result} = tt.addptr %{result}_s, %{result}_i : tensor<{count}x!tt.ptr<{element}>, #b>, tensor<{count}xi32, #b>
"""


def pointers2(name: str, element: str, rows: int, columns: int, result: str) -> str:
    """The same for a matrix."""
    whole, size = f"tensor<{rows}x{columns}xi32, #b2>", rows * columns
    tensor = f"tensor<{rows}x{columns}x!tt.ptr<{element}>, #b2>"
    return f"""
    %{result}_i = tt.make_range {{end = {size} : i32, start = 0 : i32}} : tensor<{size}xi32, #b>
    %{result}_r = tt.reshape %{result}_i : tensor<{size}xi32, #b> -> {whole}
    %{result}_s = tt.splat %{name} : !tt.ptr<{element}> -> {tensor}
    %{result} = tt.addptr %{result}_s, %{result}_r : {tensor}, {whole}
"""


# Shared memory at indices --------------------------------------------------------------------------------------------

MEM = "!ttg.memdesc<16x32xf32, #s2, #smem, mutable>"
FLOATS, INTS = "tensor<16x32xf32, #b2>", "tensor<16x32xi32, #b2>"
LOADED = (
    pointers2("x", "f32", 16, 32, "xs") + pointers2("at", "i32", 16, 32, "is") + pointers2("out", "f32", 16, 32, "os")
    + """
    %a = tt.load %xs : tensor<16x32x!tt.ptr<f32>, #b2>
    %i = tt.load %is : tensor<16x32x!tt.ptr<i32>, #b2>
"""
)  # fmt: skip
ARGUMENTS = "%x: !tt.ptr<f32>, %at: !tt.ptr<i32>, %out: !tt.ptr<f32>"


def matrices(rng: np.random.Generator, limit: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = rng.standard_normal((16, 32)).astype(np.float32)
    return x, rng.integers(0, limit, (16, 32)).astype(np.int32), np.full((16, 32), np.nan, np.float32)


@pytest.mark.parametrize(("axis", "limit"), [(0, 16), (1, 32)])
def test_gather_picks_along_an_axis(axis: int, limit: int) -> None:
    x, at, out = matrices(np.random.default_rng(1), limit)
    body = f"""{LOADED}
    %buf = ttg.local_alloc %a : ({FLOATS}) -> {MEM}
    %r = ttg.local_gather %buf[%i] {{axis = {axis} : i32}} : {MEM}, {INTS} -> {FLOATS}
    tt.store %os, %r : tensor<16x32x!tt.ptr<f32>, #b2>"""
    run(ARGUMENTS, body, [x, at, out])
    np.testing.assert_array_equal(out, np.take_along_axis(x, at, axis))


def test_scatter_puts_along_an_axis() -> None:
    rng = np.random.default_rng(2)
    x, at, out = matrices(rng, 16)
    at[:] = rng.permuted(np.tile(np.arange(16, dtype=np.int32)[:, None], (1, 32)), axis=0)
    body = f"""{LOADED}
    %buf = ttg.local_alloc : () -> {MEM}
    ttg.local_scatter %buf[%i], %a {{axis = 0 : i32}} : {MEM}, {INTS}, {FLOATS}
    %r = ttg.local_load %buf : {MEM} -> {FLOATS}
    tt.store %os, %r : tensor<16x32x!tt.ptr<f32>, #b2>"""
    run(ARGUMENTS, body, [x, at, out])
    expected = np.empty_like(x)
    np.put_along_axis(expected, at, x, 0)
    np.testing.assert_array_equal(out, expected)


def test_what_a_scatter_leaves_out_is_poison() -> None:
    x, at, out = matrices(np.random.default_rng(2), 1)
    body = f"""{LOADED}
    %buf = ttg.local_alloc : () -> {MEM}
    ttg.local_scatter %buf[%i], %a {{axis = 0 : i32}} : {MEM}, {INTS}, {FLOATS}
    %r = ttg.local_load %buf : {MEM} -> {FLOATS}
    tt.store %os, %r : tensor<16x32x!tt.ptr<f32>, #b2>"""
    with pytest.raises(Fault, match="read before it is written"):
        run(ARGUMENTS, body, [x, at, out])


def test_an_index_outside_of_the_buffer_is_a_fault() -> None:
    x, at, out = matrices(np.random.default_rng(3), 16)
    at[3, 4] = 16
    body = f"""{LOADED}
    %buf = ttg.local_alloc %a : ({FLOATS}) -> {MEM}
    %r = ttg.local_gather %buf[%i] {{axis = 0 : i32}} : {MEM}, {INTS} -> {FLOATS}"""
    with pytest.raises(Fault, match=r"index 16 at \[3, 4\] is outside of the 16 elements of 'buf' along 0"):
        run(ARGUMENTS, body, [x, at, out])


@pytest.mark.parametrize("kind", ["add", "max", "umin", "xor", "exch"])
def test_atomic_updates_happen_one_after_the_other(kind: str) -> None:
    """Many indices are the same: what an update finds is what the one before it has left."""
    rng = np.random.default_rng(4)
    x, values = (rng.integers(-100, 100, 64).astype(np.int32) for _ in range(2))
    at, mask = rng.integers(0, 9, 64).astype(np.int32), rng.integers(0, 2, 64).astype(np.bool_)
    old, out = np.full(64, -7, np.int32), np.zeros(64, np.int32)
    mem, t = "!ttg.memdesc<64xi32, #s, #smem, mutable>", "tensor<64xi32, #b>"
    names = (("x", "i32"), ("v", "i32"), ("at", "i32"), ("m", "i1"), ("old", "i32"), ("out", "i32"))
    body = "".join(pointers(name, element, 64, f"{name}s") for name, element in names)
    body += "".join(
        f"%{name}l = tt.load %{name}s : tensor<64x!tt.ptr<{element}>, #b>\n    " for name, element in names[:4]
    )
    body += f"""
    %buf = ttg.local_alloc %xl : ({t}) -> {mem}
    %o = ttg.local_atomic_scatter_rmw {kind}, %buf[%atl], %vl, %ml {{axis = 0 : i32}}
      : ({mem}, {t}, {t}, tensor<64xi1, #b>) -> {t}
    %r = ttg.local_load %buf : {mem} -> {t}
    tt.store %olds, %o, %ml : tensor<64x!tt.ptr<i32>, #b>
    tt.store %outs, %r : tensor<64x!tt.ptr<i32>, #b>"""
    run(", ".join(f"%{name}: !tt.ptr<{element}>" for name, element in names), body, [x, values, at, mask, old, out])
    combine = {
        "add": lambda a, b: a + b, "max": max, "umin": lambda a, b: min((a, b), key=lambda n: n % 2**32),
        "xor": lambda a, b: a ^ b, "exch": lambda _a, b: b,
    }[kind]  # fmt: skip
    memory, found = x.tolist(), [-7] * 64
    for index, value, chosen, lane in zip(at.tolist(), values.tolist(), mask.tolist(), range(64), strict=True):
        if chosen:
            found[lane], memory[index] = memory[index], combine(memory[index], value)
    assert (out.tolist(), old.tolist()) == (memory, found)


@pytest.mark.parametrize("waits", [True, False])
def test_a_buffer_must_not_end_while_a_copy_may_write_it(waits: bool) -> None:
    body = pointers("x", "f32", 64, "xs")
    body += """
    %buf = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %t = ttg.async_copy_global_to_local %xs, %buf : tensor<64x!tt.ptr<f32>, #b> -> <64xf32, #s, #smem, mutable>
    %g = ttg.async_commit_group tokens %t"""
    wait = "\n    %w = ttg.async_wait %g {num = 0 : i32}"
    end = "\n    ttg.local_dealloc %buf : !ttg.memdesc<64xf32, #s, #smem, mutable>"
    x = np.zeros(64, np.float32)
    if waits:
        run("%x: !tt.ptr<f32>", body + wait + end, [x])
        return
    with pytest.raises(Fault, match=r"frees 'buf', and nothing orders it behind the cp\.async.*by which it is written"):
        run("%x: !tt.ptr<f32>", body + end + wait, [x])


# Descriptors in memory -----------------------------------------------------------------------------------------------

DESC = "!tt.tensordesc<8x32xf32, #tma>"
BAR, TILE = "!ttg.memdesc<1xi64, #s, #smem, mutable>", "!ttg.memdesc<8x32xf32, #tma, #smem, mutable>"
CREATE = """
    %c8 = arith.constant 8 : i32
    %c16 = arith.constant 16 : i32
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %true = arith.constant true
    %stride = arith.constant 256 : i64
    %rows = arith.constant 12 : i32
    %columns = arith.constant 60 : i32
    %p = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
    ttng.tensormap_create %p, %x, [%c16, %c8], [%columns, %rows], [%stride], [%one, %one]
      {elem_type = 7 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 2 : i32}
      : (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
"""
FENCE = "    ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>\n"
LOAD = pointers2("out", "f32", 8, 32, "os") + f"""
    %d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to {DESC}
    %buf = ttg.local_alloc : () -> {TILE}
    %bar = ttg.local_alloc : () -> {BAR}
    ttng.init_barrier %bar, 1 : {BAR}
    ttng.barrier_expect %bar, 1024, %true : {BAR}
    ttng.async_tma_copy_global_to_local %d[%c8, %c16] %buf, %bar, %true : {DESC}, {BAR} -> {TILE}
    ttng.wait_barrier %bar, %zero : {BAR}
    ttng.inval_barrier %bar : {BAR}
    %r = ttg.local_load %buf : {TILE} -> tensor<8x32xf32, #b2>
    tt.store %os, %r : tensor<8x32x!tt.ptr<f32>, #b2>"""  # fmt: skip
POINTERS = "%x: !tt.ptr<f32>, %out: !tt.ptr<f32>"


def test_a_descriptor_made_on_the_device_is_read_by_tma() -> None:
    x = np.random.default_rng(5).standard_normal((12, 64)).astype(np.float32)
    out = np.full((8, 32), np.nan, np.float32)
    run(POINTERS, CREATE + FENCE + LOAD, [x, out], grid=(3,))
    expected = np.zeros((8, 32), np.float32)
    expected[:4] = x[8:, 16:48]
    np.testing.assert_array_equal(out, expected)


def test_a_descriptor_without_a_fence_is_a_fault() -> None:
    x, out = np.zeros((12, 64), np.float32), np.zeros((8, 32), np.float32)
    with pytest.raises(Fault, match="without a fence behind what has written it"):
        run(POINTERS, CREATE + LOAD, [x, out])


def test_memory_that_holds_no_descriptor_is_a_fault() -> None:
    x, out = np.zeros((12, 64), np.float32), np.zeros((8, 32), np.float32)
    constants = CREATE.partition("    ttng.tensormap_create")[0]
    with pytest.raises(Fault, match="it was not created"):
        run(POINTERS, constants + LOAD, [x, out])


def test_a_descriptor_with_other_boxes_is_a_fault() -> None:
    x, out = np.zeros((12, 64), np.float32), np.zeros((8, 32), np.float32)
    wrong = CREATE.replace("[%c16, %c8]", "[%columns, %c8]")
    with pytest.raises(Fault, match=r"boxes of \[8, 60\] elements, expected parts of \[8, 32\]"):
        run(POINTERS, wrong + FENCE + LOAD, [x, out])


# Where a program stands ----------------------------------------------------------------------------------------------


def stored(statement: str, type_: str) -> str:
    """Store the result `%v` of a statement at the program's place."""
    cast = {"index": "%w = arith.index_cast %v : index to i32", "i64": "%w = arith.trunci %v : i64 to i32"}
    return f"""
    {statement}
    {cast.get(type_, "%w = arith.addi %v, %v : i32")}
    %pid = tt.get_program_id x : i32
    %q = tt.addptr %out, %pid : !tt.ptr<i32>, i32
    tt.store %q, %w : !tt.ptr<i32>"""


@pytest.mark.parametrize(
    ("statement", "type_", "expected"),
    [
        ("%v = gpu.block_id x", "index", [0, 1, 2, 3]),
        ("%v = gpu.grid_dim x", "index", [4] * 4),
        ("%v = gpu.block_dim x", "index", [128] * 4),
        ("%v = gpu.block_dim y", "index", [1] * 4),
        ("%v = gpu.cluster_id x", "index", [0, 0, 1, 1]),
        ("%v = gpu.cluster_dim x", "index", [2] * 4),
        ("%v = gpu.cluster_block_id x", "index", [0, 1, 0, 1]),
        ("%v = gpu.cluster_dim_blocks x", "index", [2] * 4),
        ("%v = gpu.thread_id x", "index", [0] * 4),
        ("%v = nvvm.read.ptx.sreg.ctaid.x : i32", "i32", [0, 2, 4, 6]),
        ("%v = nvvm.read.ptx.sreg.nctaid.x : i32", "i32", [8] * 4),
        ("%v = nvvm.read.ptx.sreg.ntid.x : i32", "i32", [256] * 4),
        ("%v = nvvm.read.ptx.sreg.cluster.ctarank : i32", "i32", [0, 2, 0, 2]),
        ("%v = nvvm.read.ptx.sreg.cluster.nctarank : i32", "i32", [4] * 4),
    ],
)
def test_special_registers(statement: str, type_: str, expected: list[int]) -> None:
    out = np.full(4, -1, np.int32)
    run("%out: !tt.ptr<i32>", stored(statement, type_), [out], grid=(4,), cluster=(2, 1, 1))
    assert out.tolist() == expected


@pytest.mark.parametrize("what", ["nvvm.read.ptx.sreg.laneid : i32", "nvvm.read.ptx.sreg.tid.x : i32", "ttg.warp_id"])
def test_what_differs_between_threads_is_a_fault(what: str) -> None:
    with pytest.raises(Fault, match="the threads of a task as one"):
        run("%out: !tt.ptr<i32>", stored(f"%v = {what}", "i32"), [np.zeros(1, np.int32)])


def test_the_clock_goes_on() -> None:
    out = np.zeros(1, np.int32)
    body = """
    %a = nvvm.read.ptx.sreg.clock64 : i64
    nvvm.barrier
    %b = nvvm.read.ptx.sreg.clock64 : i64
    %v = arith.subi %b, %a : i64"""
    run("%out: !tt.ptr<i32>", stored(body, "i64"), [out])
    assert out[0] > 0


def test_the_first_thread_of_a_partition() -> None:
    """Partitions are numbered behind the warps of the default task."""
    out = np.full(2, -1, np.int32)
    body = """
    ttg.warp_specialize(%out)
    default {
      ttg.warp_yield
    }
    partition0(%o: !tt.ptr<i32>) num_warps(2) {
      ttg.warp_return
    }
    partition1(%o: !tt.ptr<i32>) num_warps(1) {
      %t = gpu.thread_id x
      %v = arith.index_cast %t : index to i32
      tt.store %o, %v : !tt.ptr<i32>
      ttg.warp_return
    } : (!tt.ptr<i32>) -> ()"""
    run("%out: !tt.ptr<i32>", body, [out])
    assert out.tolist() == [(4 + 2) * 32, -1]


# Assembly, promises, predicates --------------------------------------------------------------------------------------


def test_a_barrier_in_assembly_waits_for_all_threads_of_the_block() -> None:
    """Two tasks meet; only one arrives without the other."""
    body = """
    ttg.warp_specialize()
    default {
      ttg.inline_asm "bar.sync 1;" {constraints = "", pure = false} : () -> ()
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.inline_asm "bar.sync 1;" {constraints = "", pure = false} : () -> ()
      ttg.warp_return
    } : () -> ()"""
    run("", body, [])
    at = body.rindex("ttg.inline_asm")
    alone = body[:at] + body[body.index("\n", at) :]
    with pytest.raises(Deadlock, match="named barrier 1, at which 128 of 256 threads have arrived"):
        run("", alone, [])


@pytest.mark.parametrize("text", ["ld.shared.f32 $0, [$1];", "mul.wide.u32 $0, 1, 2;"])
def test_other_assembly_is_named(text: str) -> None:
    body = f'ttg.inline_asm "{text}" {{constraints = "", pure = false}} : () -> ()'
    with pytest.raises(Fault, match="can't run the PTX"):
        run("", body, [])


def test_a_promise_that_does_not_hold_is_a_fault() -> None:
    body = """
    %ten = arith.constant 10 : i32
    %c = arith.cmpi slt, %n, %ten : i32
    llvm.intr.assume %c : i1"""
    run("%n: i32", body, [9])
    with pytest.raises(Fault, match="assumes what does not hold"):
        run("%n: i32", body, [10])


def test_the_stages_of_a_pipeline_end_one_after_the_other() -> None:
    """Of 2 stages behind the first, stage s of iteration i belongs to iteration i + 2 - s."""
    out = np.zeros((3, 5), np.int32)
    body = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %five = arith.constant 5 : i32
    %ten = arith.constant 10 : i32
    scf.for %i = %zero to %five step %one : i32 {"""
    for stage in range(3):
        body += f"""
      %p{stage} = ttg.predicate_stage %i, %five, %one maxStage 2 stage {stage} : i32 -> i1
      %r{stage} = "ttg.mask"(%p{stage}) ({{
        %q{stage} = arith.addi %i, %ten : i32
        "ttg.mask.return"(%q{stage}) : (i32) -> ()
      }}) : (i1) -> i32
      %s{stage} = arith.constant {5 * stage} : i32
      %t{stage} = arith.addi %i, %s{stage} : i32
      %u{stage} = tt.addptr %out, %t{stage} : !tt.ptr<i32>, i32
      tt.store %u{stage}, %r{stage} : !tt.ptr<i32>"""
    run("%out: !tt.ptr<i32>", body + "\n    }", [out])
    # What does not run is poison.
    assert out.tolist() == [[10, 11, 12, -1, -1], [10, 11, 12, 13, -1], [10, 11, 12, 13, 14]]


def test_a_device_function_that_is_not_libdevices_is_named() -> None:
    body = """
    %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_magic"} : (f32) -> f32"""
    with pytest.raises(Fault, match="no device function '__nv_magic'"):
        run("%x: f32", body, [1.0])


def test_libdevice_on_a_block_and_on_a_number() -> None:
    x, out = np.linspace(0.1, 4, 64, dtype=np.float32), np.zeros(64, np.float32)
    extern = 'tt.extern_elementwise {} {{libname = "", libpath = "", pure = true, symbol = "{}"}} : {}'
    single, block = "(f32, f32) -> f32", "(tensor<64xf32, #b>, tensor<64xf32, #b>) -> tensor<64xf32, #b>"
    body = pointers("x", "f32", 64, "xs") + pointers("out", "f32", 64, "os") + f"""
    %a = tt.load %xs : tensor<64x!tt.ptr<f32>, #b>
    %n = {extern.format("%y, %y", "__nv_fadd_ru", single)}
    %m = tt.splat %n : f32 -> tensor<64xf32, #b>
    %r = {extern.format("%a, %m", "__nv_powf", block)}
    tt.store %os, %r : tensor<64x!tt.ptr<f32>, #b>"""  # fmt: skip
    run("%x: !tt.ptr<f32>, %y: f32, %out: !tt.ptr<f32>", body, [x, 0.75, out])
    np.testing.assert_array_equal(out, (x.astype(np.float64) ** 1.5).astype(np.float32))
