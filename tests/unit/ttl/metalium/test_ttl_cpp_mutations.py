"""Mistakes in kernels are found by the machine, each with its message and at its line."""

import numpy as np
import pytest

from tests.unit.ttl.metalium.metalium_programs import (
    Mutation,
    Tensor,
    check_mutation,
    manifest,
    mutated,
    needs_compiler,
    results,
    thread,
)
from tlx_xdsl.ttl.metalium.build import compile_many
from tlx_xdsl.ttl.metalium.machine import MetaliumError, Program

pytestmark = needs_compiler

READER = """void kernel_main() {
  constexpr auto args = TensorAccessorArgs<3, 0>();
  const auto a = TensorAccessor(args, get_common_arg_val<uint32_t>(0), 4096);
  const auto b = TensorAccessor(TensorAccessorArgs<4, 1>(), get_common_arg_val<uint32_t>(1), 4096);
  for (size_t i = 0; i < 3; i += 1) {
    cb_reserve_back(0, 2);
    const uint32_t to_a = get_write_ptr(0);
    noc_async_read_page(i * 2, a, to_a);
    noc_async_read_page(i * 2 + 1, a, to_a + 4096);
    noc_async_read_barrier();
    cb_push_back(0, 2);
    cb_reserve_back(1, 2);
    const uint32_t to_b = get_write_ptr(1);
    noc_async_read_page(i * 2, b, to_b);
    noc_async_read_page(i * 2 + 1, b, to_b + 4096);
    noc_async_read_barrier();
    cb_push_back(1, 2);
  }
}
"""
COMPUTE = """void kernel_main() {
  compute_kernel_hw_startup(0, 1, 2);
  for (size_t i = 0; i < 3; i += 1) {
    cb_wait_front(0, 2);
    cb_wait_front(1, 2);
    cb_reserve_back(2, 2);
    for (size_t j = 0; j < 2; j += 1) {
      tile_regs_acquire();
      copy_init(0);
      copy_tile(0, j, 0);
      copy_init(1);
      copy_tile(1, j, 1);
      add_binary_tile_init();
      add_binary_tile(0, 1, 0);
      tile_regs_commit();
      tile_regs_wait();
      pack_tile<true>(0, 2, j);
      tile_regs_release();
    }
    cb_pop_front(0, 2);
    cb_pop_front(1, 2);
    cb_push_back(2, 2);
  }
}
"""
WRITER = """void kernel_main() {
  const auto c = TensorAccessor(TensorAccessorArgs<5, 0>(), get_common_arg_val<uint32_t>(0), 4096);
  for (size_t i = 0; i < 3; i += 1) {
    cb_wait_front(2, 2);
    const uint32_t from = get_read_ptr(2);
    noc_async_write_page(i * 2, c, from);
    noc_async_write_page(i * 2 + 1, c, from + 4096);
    noc_async_write_barrier();
    cb_pop_front(2, 2);
  }
}
"""
SHAPE = (64, 96)
A, B = np.random.default_rng(0).standard_normal((2, *SHAPE)).astype(np.float32)
TENSORS = [Tensor("a", A), Tensor("b", B), Tensor("c", np.zeros(SHAPE, np.float32), written=True)]
ARGUMENTS = [0, 1, 2, 0, 0, 0]


def addition(pages: int = 4) -> Program:
    cbs = [
        {"index": i, "address": i * 16384, "pages": pages, "page_bytes": 4096, "data_format": "Float32"}
        for i in range(3)
    ]
    threads = [
        thread("reader", "noc", ARGUMENTS, ["a", "b"]),
        thread("compute", "compute", ARGUMENTS, []),
        thread("writer", "noc", ARGUMENTS, ["c"]),
    ]
    sources = {"reader": READER, "compute": COMPUTE, "writer": WRITER}
    return Program(sources, manifest(cbs, TENSORS, threads, capacity=4))


BARRIER = "    noc_async_read_barrier();\n"
DROPPED = [
    Mutation(
        "reader",
        BARRIER,
        "",
        "the read issued at reader:8 has not arrived: noc_async_read_barrier",
        "reader: cb_push_back(0, 2)",
    ),
    Mutation(
        "reader",
        "    cb_push_back(0, 2);\n",
        "",
        "deadlock: .*compute waits at compute:4 in cb_wait_front: 2 pages in circular buffer 0",
        "reader: cb_reserve_back(1, 2)",
    ),
    Mutation(
        "reader",
        "    cb_reserve_back(0, 2);\n",
        "",
        "no page of circular buffer 0 is reserved",
        "reader: get_write_ptr(0)",
    ),
    Mutation(
        "compute",
        "    cb_wait_front(1, 2);\n",
        "",
        "tile 0 of circular buffer 1 is read, but 0 have been waited for",
        "compute: copy_tile(1, j, 1)",
    ),
    Mutation(
        "compute",
        "    cb_reserve_back(2, 2);\n",
        "",
        "tile 0 of circular buffer 2 is written, but 0 are reserved",
        "compute: pack_tile",
    ),
    Mutation(
        "compute",
        "      tile_regs_acquire();\n",
        "",
        "DST is used outside of tile_regs_acquire",
        "compute: copy_tile(0, j, 0)",
    ),
    Mutation(
        "compute",
        "      tile_regs_commit();\n",
        "",
        "the DST registers are acquired: they have to be committed",
        "compute: tile_regs_wait",
    ),
    Mutation(
        "compute", "      tile_regs_wait();\n", "", "a tile is packed outside of tile_regs_wait", "compute: pack_tile"
    ),
    Mutation(
        "compute",
        "      tile_regs_release();\n",
        "",
        "the DST registers are being packed: they have to be free",
        "compute: tile_regs_acquire",
    ),
    Mutation(
        "compute",
        "      pack_tile<true>(0, 2, j);\n",
        "",
        "circular buffer 2 is read, but was never written",
        "writer: noc_async_write_page(i * 2, c",
    ),
    Mutation(
        "compute",
        "      copy_init(1);\n      copy_tile(1, j, 1);\n",
        "",
        "tile 1 of DST is read, but nothing has been put there",
        "compute: add_binary_tile(0, 1, 0)",
    ),
    Mutation(
        "compute",
        "      add_binary_tile_init();\n",
        "",
        "the vector unit is set up for nothing",
        "compute: add_binary_tile(0, 1, 0)",
    ),
    Mutation(
        "compute", "      copy_init(0);\n", "", "the matrix unit is set up for nothing", "compute: copy_tile(0, j, 0)"
    ),
    Mutation(
        "compute",
        "    cb_pop_front(0, 2);\n",
        "",
        "deadlock: .*reader waits at reader:6 in cb_reserve_back: 2 free pages of circular buffer 0",
        "reader: cb_reserve_back(0, 2)",
    ),
    Mutation(
        "compute",
        "    cb_push_back(2, 2);\n",
        "",
        "deadlock: .*writer waits at writer:4 in cb_wait_front: 2 pages in circular buffer 2",
        "writer: cb_wait_front(2, 2)",
    ),
    Mutation(
        "writer",
        "    cb_wait_front(2, 2);\n",
        "",
        "no page of circular buffer 2 has been waited for",
        "writer: get_read_ptr(2)",
    ),
    Mutation(
        "writer",
        "    noc_async_write_barrier();\n",
        "",
        "the write issued at writer:6 has not read these pages yet",
        "writer: cb_pop_front(2, 2)",
    ),
    Mutation("writer", "    cb_pop_front(2, 2);\n", "", "deadlock: 1 of 3 threads", "compute: cb_reserve_back(2, 2)"),
]
CHANGED = [
    Mutation(
        "compute",
        "copy_tile(1, j, 1)",
        "copy_tile(1, j + 1, 1)",
        "tile 2 of circular buffer 1 is read, but 2 have been waited for",
        "compute: copy_tile(1, j + 1, 1)",
    ),
    Mutation(
        "compute",
        "copy_tile(1, j, 1)",
        "copy_tile(1, j, 4)",
        "DST has 4 tiles in this mode, no tile 4",
        "compute: copy_tile(1, j, 4)",
    ),
    Mutation(
        "compute",
        "pack_tile<true>(0, 2, j)",
        "pack_tile<true>(2, 2, j)",
        "tile 2 of DST is packed, but nothing",
        "compute: pack_tile",
    ),
    Mutation(
        "compute",
        "pack_tile<true>(0, 2, j)",
        "pack_tile<true>(0, 2, 2 * j)",
        "tile 2 of circular buffer 2 is written, but 2 are reserved",
        "compute: pack_tile",
    ),
    Mutation(
        "compute",
        "pack_tile<true>(0, 2, j)",
        "pack_tile<false>(0, 2, 1)",
        r"tile 1 is named, but pack_tile<false> packs to the next one, 0",
        "compute: pack_tile",
    ),
    Mutation(
        "compute",
        "cb_pop_front(0, 2)",
        "cb_pop_front(0, 3)",
        "3 pages of circular buffer 0 are popped, but 2 have been waited for",
        "compute: cb_pop_front(0, 3)",
    ),
    Mutation(
        "compute",
        "cb_wait_front(0, 2)",
        "cb_wait_front(0, 3)",
        "a block of 3 pages starts at page 2 of the 4",
        "compute: cb_wait_front(0, 3)",
    ),
    Mutation(
        "compute",
        "i < 3",
        "i < 2",
        "deadlock: 1 of 3 threads have not ended.*writer waits at writer:4 in cb_wait_front",
        "writer: cb_wait_front(2, 2)",
    ),
    Mutation(
        "reader",
        "cb_push_back(0, 2)",
        "cb_push_back(0, 1)",
        "deadlock: .*compute waits at compute:4 in cb_wait_front",
        "compute: cb_wait_front(0, 2)",
    ),
    Mutation(
        "reader",
        "cb_reserve_back(0, 2)",
        "cb_reserve_back(0, 5)",
        "circular buffer 0 has 4 pages, not 5",
        "reader: cb_reserve_back(0, 5)",
    ),
    Mutation(
        "reader",
        "cb_reserve_back(0, 2)",
        "cb_reserve_back(7, 2)",
        "there is no circular buffer 7",
        "reader: cb_reserve_back(7, 2)",
    ),
    Mutation(
        "reader",
        "to_a + 4096",
        "to_a + 8192",
        "which are no reserved pages of a circular buffer",
        "reader: to_a + 8192",
    ),
    Mutation("reader", "to_a + 4096", "to_a + 2048", "was never written", "compute: copy_tile(0, j, 0)"),
    Mutation(
        "reader",
        "i * 2 + 1, a",
        "i * 3 + 1, a",
        "page 7 of tensor 'a' is accessed, which has 6 pages",
        "reader: i * 3 + 1, a",
    ),
    Mutation(
        "reader",
        "get_common_arg_val<uint32_t>(0), 4096",
        "get_common_arg_val<uint32_t>(1), 4096",
        "the arguments are those of tensor 'a', the address is not",
        "reader: get_common_arg_val<uint32_t>(1), 4096",
    ),
    Mutation("reader", "(0), 4096", "(0), 2048", "a page of tensor 'a' has 4096 bytes, not 2048", "reader: (0), 2048"),
    Mutation(
        "reader",
        "TensorAccessorArgs<3, 0>",
        "TensorAccessorArgs<2, 0>",
        "compile-time argument 2 holds no TensorAccessorArgs",
        "reader: TensorAccessor(args",
    ),
    Mutation(
        "reader",
        "get_common_arg_val<uint32_t>(1)",
        "get_common_arg_val<uint32_t>(2)",
        "reader has 2 common runtime arguments, no number 2",
        "reader: get_common_arg_val<uint32_t>(2)",
    ),
    Mutation(
        "writer",
        "cb_wait_front(2, 2)",
        "cb_wait_front(0, 2)",
        "circular buffer 0 has two consumers, compute and writer",
        "writer: cb_wait_front(0, 2)",
    ),
    Mutation(
        "writer",
        "noc_async_write_page(i * 2, c, from)",
        "noc_async_read_page(i * 2, c, from)",
        "which are no reserved pages",
        "writer: noc_async_read_page",
    ),
    Mutation(
        "writer",
        "get_read_ptr(2)",
        "get_compile_time_arg_val(6)",
        "there is no compile-time argument of this number",
        "writer: ",
    ),
]
ALL = [*DROPPED, *CHANGED]


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """All in one call of the compiler, but for those that do not compile."""
    compile_many([addition(), *(mutated(addition(), each) for each in ALL[:-1])])


@pytest.mark.parametrize("seed", range(4))
def test_without_a_mistake(seed: int) -> None:
    (result,) = results(addition(), TENSORS, seed=seed)
    np.testing.assert_array_equal(result, A + B)


@pytest.mark.parametrize("mutation", ALL, ids=lambda each: f"{each.thread}: {each.old.strip()} -> {each.new.strip()}")
def test_mutation(mutation: Mutation) -> None:
    if mutation is ALL[-1]:
        with pytest.raises(MetaliumError, match=mutation.message):
            results(mutated(addition(), mutation), TENSORS)
        return
    check_mutation(addition(), mutation, TENSORS)


@pytest.mark.parametrize("mutation", DROPPED, ids=lambda each: each.old.strip())
def test_a_dropped_call_is_found_in_any_order_of_threads(mutation: Mutation) -> None:
    for seed in range(1, 4):
        with pytest.raises(MetaliumError):
            results(mutated(addition(), mutation), TENSORS, seed=seed)


def test_a_block_that_is_never_popped() -> None:
    made = addition()
    sources = {
        **made.sources,
        "compute": COMPUTE.replace("i < 3", "i < 2"),
        "writer": WRITER.replace("i < 3", "i < 2"),
    }
    with pytest.raises(
        MetaliumError, match=r"circular buffer 0 of core \(0, 0\) still holds 2 pages at the end"
    ) as raised:
        results(Program(sources, made.manifest), TENSORS)
    assert (raised.value.file, raised.value.line) == ("reader", 11)


def test_buffers_that_overlap() -> None:
    made = addition()
    cbs = [{**cb, "address": 16384 if cb["index"] == 0 else cb["address"]} for cb in made.manifest["cbs"]]
    with pytest.raises(MetaliumError, match="are written, where circular buffer 0 holds data"):
        results(Program(made.sources, {**made.manifest, "cbs": cbs}), TENSORS)


def test_a_ring_that_the_blocks_do_not_divide() -> None:
    with pytest.raises(
        MetaliumError, match="a block of 2 pages starts at page 2 of the 3 of circular buffer 0: it would wrap"
    ):
        results(addition(pages=3), TENSORS)
