"""Printed C++ of the operations of `ttkernel`, in both versions of the API."""

import re

import pytest

from tests.unit.ttl.metalium.metalium_programs import manifest, needs_compiler, thread
from tests.unit.ttl.transforms.ttkernel_calls import BUFFERS, COMPUTE, NOC, NOC_VALUES, VALUES, kernel
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.ttl.cpp import PROFILES, print_cpp
from tlx_xdsl.ttl.cpp.profiles import DATAFLOW
from tlx_xdsl.ttl.dialects.ttkernel import TTKERNEL
from tlx_xdsl.ttl.metalium.build import compile_many
from tlx_xdsl.ttl.metalium.machine import Program
from tlx_xdsl.ttl.metalium.program import HEADERS
from tlx_xdsl.ttl.transforms.convert_ttkernel_to_emitc import ConvertTTKernelToEmitCPass


def sources(profile: str, text: str | None = None) -> dict[str, str]:
    module = parse_module(kernel() if text is None else text)
    ConvertTTKernelToEmitCPass(profile).run(module)
    return print_cpp(module, lines=False)


def test_the_kernel_calls_every_operation() -> None:
    """The tests here are of all operations."""
    known = {op.name.removeprefix("ttkernel.") for op in TTKERNEL.operations}
    given = set(re.findall(r"ttkernel\.(\w+)\(", VALUES + NOC_VALUES))
    assert known == {*COMPUTE, *NOC, *BUFFERS, *given}


@needs_compiler
def test_all_of_it_compiles() -> None:
    """The compiler takes the text with the machine's headers, in both versions; both of a kernel are one call."""
    threads = [thread("compute", "compute", [0], []), thread("noc", "noc", [0, 0], [])]
    compile_many([Program(sources(profile), manifest([], [], threads)) for profile in PROFILES])


@pytest.mark.parametrize("profile", PROFILES)
def test_the_machine_has_all_headers(profile: str) -> None:
    chosen = PROFILES[profile]
    assert {DATAFLOW, *(chosen.compute_header(callee) for callee in chosen.headers)} <= HEADERS


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (
            "0.81",
            [
                "compute_kernel_hw_startup(cb, cb);",
                "copy_init(cb);",
                "matmul_init(cb, cb);",
                "add_init(cb, cb);",
                "unary_bcast_init<BroadcastType::COL>(cb);",
                "unary_bcast_uninit<BroadcastType::COL>(cb);",
                "transpose_init(cb);",
                "transpose_tile(cb, 1, 1);",
                "reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(cb, cb, cb);",
                "reduce_uninit(cb);",
                "binary_max_tile(1, 1, 1);",
                "gelu_tile<false>(1);",
                "fill_tile(1, 1.5f);",
                "copy_dest_values<DataFormat::Float32>(1, 1);",
                "pack_tile<true>(1, cb, 1);",
                "noc_async_read_page(1, acc, 1);",
                "noc_async_read_page(1, acc, 1, 1);",
                "noc_async_write_page(1, acc, 1, 0, 1);",
                "get_absolute_logical_x();",
                "get_noc_addr(worker_logical_col_to_virtual_col[lx], my_y[noc_index], sem);",
            ],
        ),
        (
            "0.81-objects",
            [
                "CircularBuffer cb_buffer = CircularBuffer(cb);",
                "cb_buffer.reserve_back(1);",
                "copy_tile(cb, 1, 1);",
                "const uint32_t w = cb_buffer.get_write_ptr();",
                "noc.async_read(acc, CoreLocalMem<uint32_t>(1), acc.get_aligned_page_size(), {uint32_t(1)}, {});",
                "acc.get_aligned_page_size(), {uint32_t(1), uint32_t(1)}, {});",
                "noc.async_write(CoreLocalMem<uint32_t>(1), acc, acc.get_aligned_page_size(), {}, {uint32_t(1)});",
                "noc.async_write(CoreLocalMem<uint32_t>(1), UnicastEndpoint(), 1, {}, {",
                "noc.async_write_multicast<NocOptions::MCAST_INCL_SRC>(CoreLocalMem<uint32_t>(1), MulticastEndpoint(),",
                "noc.async_atomic_barrier();",
                "Semaphore<> sem = Semaphore<>(0);",
                "sem.wait_min(1);",
                "sem.up(noc, ",
                "sem.relay_unicast(noc, sem, ",
                "sem.relay_multicast<NocOptions::MCAST_INCL_SRC>(noc, sem, ",
            ],
        ),
        (
            "2025-12",
            [
                "init_sfpu(cb, cb);",
                "binary_op_init_common(cb, cb, cb);",
                "mm_init(cb, cb, cb);",
                "add_tiles_init(cb, cb);",
                "copy_tile_init(cb);",
                "unary_bcast_init<BroadcastType::COL>(cb, cb);",
                "transpose_wh_init(cb, cb);",
                "transpose_wh_tile(cb, 1, 1);",
                "reduce_uninit();",
                "copy_dest_values(1, 1);",
                "noc_async_read_tile(1, acc, 1);",
                "#define REDUCE_OP PoolType::SUM",
                "void MAIN { kernel_main(); }",
            ],
        ),
    ],
)
def test_spellings(profile: str, expected: list[str]) -> None:
    text = "\n".join(sources(profile).values())
    missing = [each for each in expected if each not in text]
    assert not missing, text


def test_objects_want_addresses_of_places() -> None:
    text = kernel().replace("noc_async_write(%n, %data", "noc_async_write(%n, %range")
    with pytest.raises(CompilationError, match="wants an address of ttkernel"):
        sources("0.81-objects", text)


def test_copies_between_registers_name_the_target_first_in_2025() -> None:
    text = kernel().replace("ttkernel.copy_dest_values(%i, %i)", "ttkernel.copy_dest_values(%zero, %i)")
    text = text.replace("%n = arith", "%zero = arith.constant 0 : index\n  %n = arith", 1)
    assert "copy_dest_values<DataFormat::Float32>(0, 1);" in sources("0.81", text)["compute.cpp"]
    assert "copy_dest_values(1, 0);" in sources("2025-12", text)["compute.cpp"]


MIXED = """
!a = !ttkernel.cb<2, !ttcore.tile<32x32, f32>>
!b = !ttkernel.cb<2, !ttcore.tile<32x32, bf16>>
func.func @compute() attributes {ttkernel.thread = #ttkernel.thread<compute>} {
  %i = arith.constant 0 : index
  %a = ttkernel.get_compile_time_arg_val() {index = 0 : i32} : () -> !a
  %b = ttkernel.get_compile_time_arg_val() {index = 1 : i32} : () -> !b
  ttkernel.mm_init(%a, %b, %b) : (!a, !b, !b) -> ()
  ttkernel.copy_tile_init(%b) : (!b) -> ()
  ttkernel.reduce_init(%a, %b, %b) {dims = [1], kind = "sum"} : (!a, !b, !b) -> ()
  ttkernel.pack_tile(%i, %a, %i) : (index, !a, index) -> ()
  ttkernel.pack_tile(%i, %b, %i) : (index, !b, index) -> ()
  func.return
}
"""


def test_units_are_reconfigured_for_formats_that_differ() -> None:
    body = sources("0.81", MIXED)["compute.cpp"].split("{\n", 1)[1]
    assert [line.strip() for line in body.splitlines()[2:-1]] == [
        "compute_kernel_hw_startup<SrcOrder::Reverse>(a, b, b);",
        "reconfig_data_format(b, a);",
        "pack_reconfig_data_format(b);",
        "matmul_init(a, b);",
        "reconfig_data_format_srca(b);",
        "copy_init(b);",
        "reconfig_data_format(b, a);",
        "pack_reconfig_data_format(b);",
        "reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(a, b, b);",
        "pack_reconfig_data_format(a);",
        "pack_tile<true>(0, a, 0);",
        "pack_reconfig_data_format(b);",
        "pack_tile<true>(0, b, 0);",
    ]
