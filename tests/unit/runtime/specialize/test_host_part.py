"""The host's part of a specialised launch: descriptors, numbers, conditions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tlx_xdsl import TensorDescriptor
from tlx_xdsl.errors import InputError
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.runtime.specialize.host_part import Computed, Described, Given, HostPart, Memory, address_of

pytestmark = pytest.mark.quick

ROWS = Described("a_ptr", ("M", "K"), ("stride_am", "1"), (64, 32))


def named(m=100, k=48, stride=48):
    return {"a_ptr": np.zeros((m, stride), np.float16), "M": m, "K": k, "stride_am": stride, "BLOCK": constexpr(64)}


def test_descriptors_are_made_of_the_plain_arguments():
    host = HostPart((ROWS, Given("M"), Computed("grid[0] * BLOCK")))
    given = named()
    (x, y, z), (descriptor, m, number) = host.arguments((3, 2), given, programs=132)
    assert (x, y, z) == (3, 2, 1)
    assert descriptor.base is given["a_ptr"]
    assert (descriptor.shape, descriptor.strides, descriptor.block_shape) == ([100, 48], [48, 1], [64, 32])
    assert (m, number) == (100, 192)


def test_a_condition_that_does_not_hold_is_the_reason():
    host = HostPart((ROWS,), ("stride_am % 8 == 0", "a_ptr % 16 == 0"))
    assert not isinstance(host.arguments(1, named(), 132), str)
    assert host.arguments(1, named(stride=52), 132) == "the launch does not fit: stride_am % 8 == 0 does not hold"
    given = named()
    given["a_ptr"] = given["a_ptr"].reshape(-1)[1:]
    assert address_of(given["a_ptr"]) % 16
    assert "a_ptr % 16 == 0 does not hold" in host.arguments(1, given, 132)


def test_what_tma_can_not_address_is_the_reason():
    found = HostPart((ROWS,)).arguments(1, named(stride=49), 132)
    assert "TMA can't address 'a_ptr'" in found
    found = HostPart((ROWS,)).arguments(1, named(k=0), 132)
    assert "shape[1]: expected 1 to" in found


def test_a_persistent_kernel_has_as_many_programs_as_run_at_a_time():
    host = HostPart((Computed("grid[0]"), Computed("grid[1]")), persistent=True)
    assert host.arguments(lambda given: (given["M"], 2), named(), 132) == ((132, 1, 1), [100, 2])
    assert host.arguments((3, 2), named(), 132) == ((6, 1, 1), [3, 2])
    assert host.arguments((0, 2), named(), 132) == ((0, 2, 1), [0, 2])


def test_programs_that_share_a_loop_have_memory_of_their_launch():
    host = HostPart((Memory("grid[0] * grid[1] * BLOCK", "fp32"), Memory("grid[0]", "i32", is_zero=True)), split=4)
    assert host.has_memory
    assert not HostPart((Given("M"),)).has_memory
    sizes, (sums, counts) = host.arguments((3, 2), named(), 132)
    assert sizes == (12, 2, 1)
    assert (sums.dtype, sums.size, counts.dtype, counts.tolist()) == (np.float32, 3 * 2 * 64, np.int32, [0, 0, 0])
    counts += 1
    assert host.arguments((3, 2), named(), 132)[1][1].tolist() == [0, 0, 0]
    assert HostPart.of_json(json.loads(json.dumps(host.as_json()))) == host


def test_clusters_are_full():
    host = HostPart((Computed("grid[0]"),), persistent=True, cluster=2)
    for tiles, programs, expected in ((5, 132, 6), (6, 132, 6), (200, 132, 132), (200, 7, 6), (1, 132, 2), (3, 1, 2)):
        assert host.arguments((tiles,), {}, programs) == ((expected, 1, 1), [tiles])
    assert HostPart.of_json(host.as_json()) == host


def test_a_descriptor_of_the_users_gets_the_block_that_the_kernel_reads():
    array = np.zeros((128, 64), np.float16)
    given = TensorDescriptor.from_tensor(array, [128, 64])
    _, (same, half) = HostPart((Given("x", (128, 64)), Given("x", (64, 64)))).arguments(1, {"x": given}, 132)
    assert same is given
    assert half.base is array
    assert half.block_shape == [64, 64]
    assert given.block_shape == [128, 64]


def test_expressions_reach_nothing_but_arguments():
    with pytest.raises(NameError):
        HostPart((Computed("open"),)).arguments(1, named(), 132)
    with pytest.raises(InputError):
        HostPart(()).arguments((1, 1, 1, 1), named(), 132)


def test_it_is_kept_as_json():
    host = HostPart((ROWS, Given("x", (64, 64)), Given("M"), Computed("grid[0]")), ("M > 0",), persistent=True)
    assert HostPart.of_json(json.loads(json.dumps(host.as_json()))) == host
