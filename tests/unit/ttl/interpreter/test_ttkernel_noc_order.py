"""The order that a network on chip keeps without barriers, and what it does not keep.

Vendor's words: TT-Metalium, "Ordering (NOC, CMD_BUF, VC)", and the notes in its own kernels on multicasts before flags.
"""

# The lines of the IR are as long as they are.
# ruff: noqa: E501

import numpy as np
import pytest

from tests.unit.ttl.interpreter.ttkernel_programs import TENSOR, TILE, multicast, parse, two_pipes
from tlx_xdsl.interpreter.faults import Fault, Race
from tlx_xdsl.ttl.interpreter.ttkernel import explore, run

WRITE_BARRIER = "    ttkernel.noc_async_write_barrier() : () -> ()\n"
BLACKHOLE = 'attributes {arch = "blackhole", grid'
ANNOUNCE = "    ttkernel.noc_semaphore_inc(%valid_there, %one) : (!ttkernel.noc_addr, i32) -> ()\n"


def columns(number: int) -> list[np.ndarray]:
    return [np.ones((32, 96), np.float32), np.zeros((32, 32 * number), np.float32)]


def rows() -> list[np.ndarray]:
    return [np.ones((32, 64), np.float32), np.zeros((96, 64), np.float32)]


def unicast_then_increment(*, barrier: bool) -> str:
    """A write to a core and an increment of its semaphore, with a barrier between them or after both."""
    text = two_pipes("inc")
    before = f"%bytes) : (i32, !ttkernel.noc_addr, i32) -> ()\n{WRITE_BARRIER}"
    assert text.count(before) == text.count(ANNOUNCE) == 1
    if barrier:
        return text
    return text.replace(before, before.removesuffix(WRITE_BARRIER)).replace(ANNOUNCE, ANNOUNCE + WRITE_BARRIER)


def multicast_then_flag() -> str:
    """A multicast of data and one of the flag, without a barrier between them."""
    text = multicast(2, 2)
    return text.replace(WRITE_BARRIER, "", 1)


@pytest.mark.parametrize("text", [unicast_then_increment(barrier=True), unicast_then_increment(barrier=False)])
def test_an_increment_comes_after_a_write_to_the_same_core(text):
    arrays = columns(2)
    run(parse(text), arrays)
    assert (arrays[1] == 1).all()
    found = explore(parse(text), columns(2))
    assert found.complete
    assert found.fault is None


def test_a_flag_comes_after_the_data_of_an_earlier_multicast():
    found = explore(parse(multicast_then_flag()), rows(), budget=60)
    assert found.fault is None


@pytest.mark.parametrize("text", [unicast_then_increment(barrier=False), multicast_then_flag()])
def test_on_blackhole_there_must_be_a_barrier(text):
    arrays = columns(2) if "two_driver" in text else rows()
    found = explore(parse(text.replace("attributes {grid", BLACKHOLE, 1)), arrays)
    assert found.fault is not None
    assert "not written" in found.fault.message


def test_unicasts_and_multicasts_have_no_order():
    """The flag is sent by increments, which have another channel than the multicast of the data."""
    text = multicast_then_flag()
    flag = next(line for line in text.split("\n") if "noc_semaphore_set_multicast(" in line)
    each = (
        "".join(
            f"    %to{x} = ttkernel.get_noc_addr(%{name}, %source_y, %valid_address) : (i32, i32, i32) -> !ttkernel.noc_addr\n"
            f"    ttkernel.noc_semaphore_inc(%to{x}, %one) : (!ttkernel.noc_addr, i32) -> ()\n"
            for x, name in enumerate(("first_x", "last_x"))
        )
        + "    ttkernel.noc_async_atomic_barrier() : () -> ()"
    )
    with pytest.raises(Fault, match="not written"):
        run(parse(text.replace(flag, each)), rows())
    with_barrier = multicast(2, 2).replace(flag, each)
    assert explore(parse(with_barrier), rows(), budget=100).fault is None


def in_one_thread(first: str, second: str) -> str:
    """A thread that begins two transfers between a buffer and page 0 of a tensor, and then waits for both."""
    a = TENSOR.format(32, 32)
    cb = f"!ttkernel.cb<2, {TILE}>"
    call = "    ttkernel.noc_async_{}_tile(%zero, %acc, %{}) : (i32, !ttkernel.TensorAccessor, i32) -> ()\n"
    steps = "".join(
        call.format(kind, place) for kind, place in zip((first, second), ("one_place", "two_place"), strict=True)
    )
    return f"""\
ttl.kernel_driver @one_driver(%a : {a}) attributes {{grid = #ttcore.grid<1x1>}} {{
  %cb0 = ttl.bind_cb {{cb_index = 0 : i32, buffer_factor = 2 : i32, l1_address = 0 : i32}} : !ttl.cb<[1, 1], {TILE}, 2>
  %acc_a = ttl.tensor_accessor %a : {a} -> !ttl.tensor_accessor<{a}>
  ttl.launch_thread @one(%cb0, %acc_a)
  ttl.kernel_driver_return
}}
func.func @one() attributes {{ttkernel.thread = #ttkernel.thread<noc>}} {{
  %zero = arith.constant 0 : i32
  %two = arith.constant 2 : i32
  %bytes = arith.constant 4096 : i32
  %cb = ttkernel.get_compile_time_arg_val() {{index = 0 : i32}} : () -> {cb}
  %base = ttkernel.get_common_arg_val() {{index = 0 : i32}} : () -> i32
  %args = ttkernel.TensorAccessorArgs() {{cta = 1 : i32, crta = 0 : i32}} : () -> !ttkernel.TensorAccessorArgs
  %acc = ttkernel.TensorAccessor(%args, %base, %bytes) {{layout = #ttl.layout<tiled>, shape = [32 : i32, 32 : i32], element = {TILE}}} : (!ttkernel.TensorAccessorArgs, i32, i32) -> !ttkernel.TensorAccessor
  ttkernel.cb_reserve_back(%cb, %two) : ({cb}, i32) -> ()
  %one_place = ttkernel.get_write_ptr(%cb) : ({cb}) -> i32
  %two_place = arith.addi %one_place, %bytes : i32
    ttkernel.noc_async_read_tile(%zero, %acc, %one_place) : (i32, !ttkernel.TensorAccessor, i32) -> ()
    ttkernel.noc_async_read_tile(%zero, %acc, %two_place) : (i32, !ttkernel.TensorAccessor, i32) -> ()
    ttkernel.noc_async_read_barrier() : () -> ()
{steps}    ttkernel.noc_async_read_barrier() : () -> ()
    ttkernel.noc_async_write_barrier() : () -> ()
  ttkernel.cb_push_back(%cb, %two) : ({cb}, i32) -> ()
  ttkernel.cb_wait_front(%cb, %two) : ({cb}, i32) -> ()
  ttkernel.cb_pop_front(%cb, %two) : ({cb}, i32) -> ()
  func.return
}}
"""


@pytest.mark.parametrize("order", [("write", "read"), ("read", "write")])
def test_reads_and_writes_of_a_thread_have_no_order(order):
    with pytest.raises(
        Race, match=r"page 0 of tensor 'a' .* which the same thread .*, and nothing orders them"
    ) as caught:
        run(parse(in_one_thread(*order)), [np.zeros((32, 32), np.float32)])
    assert "wait for the first transfer" in caught.value.notes[1]


def test_writes_of_a_thread_to_one_page_keep_their_order():
    run(parse(in_one_thread("write", "write")), [np.zeros((32, 32), np.float32)])
