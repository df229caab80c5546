"""Special registers, assembly, promises, predicates and device functions, in small texts."""

# covers: tlx.utility, ttg.registers

import numpy as np
import pytest

from tests.unit.interpreter.small_texts import pointers, run
from tlx_xdsl.interpreter.faults import Deadlock, Fault

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
    """Partitions are numbered after the warps of the default task."""
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
    """Stage s of iteration i belongs to iteration i + 2 - s, of 2 stages after the first."""
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
