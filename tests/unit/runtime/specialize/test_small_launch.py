"""Small launches in the place of large ones: which numbers change, and which do not."""

from __future__ import annotations

import numpy as np
import pytest

from tlx_xdsl import TensorDescriptor
from tlx_xdsl.language.core import constexpr
from tlx_xdsl.runtime.specialize.small import small_launches

pytestmark = pytest.mark.quick


class Meta:
    """A tensor of torch's device `meta`."""

    dtype = "torch.float16"
    device = type("Device", (), {"type": "meta"})()

    def __init__(self, *shape, strides=None, dtype="torch.float16"):
        self.shape, self._strides, self.dtype = shape, strides, dtype

    def stride(self):
        dense = tuple(int(np.prod(self.shape[at + 1 :])) for at in range(len(self.shape)))
        return self._strides or dense

    def element_size(self):
        return 2


def first(grid, **named):
    return next(small_launches(grid, named))


def test_equal_numbers_stay_equal_and_strides_follow():
    found = first(lambda at: (at["M"] // 64, 7), a=Meta(4096, 8192), b=Meta(8192, 2048), M=4096, N=2048, K=8192,
                  stride_a=8192, stride_b=2048, one=1, x=0.5)  # fmt: skip
    given = found.arguments
    m, k = given["a"].shape
    assert given["b"].shape == (k, given["N"])
    assert (given["M"], given["K"], given["stride_a"], given["stride_b"]) == (m, k, k, given["N"])
    assert len({m, k, given["N"]}) == 3
    assert all(not each % 16 and each % 64 for each in (m, k, given["N"]))
    assert (given["one"], given["x"]) == (1, 0.5)
    assert found.grid in ((2, 3, 1), (3, 2, 1), (1, 6, 1), (6, 1, 1))
    assert np.abs(given["a"].astype(np.float32)).max() > 0


def test_what_16_does_not_divide_stays_so():
    given = first(1, a=Meta(4099, 64, strides=(72, 1)), M=4099, stride=72).arguments
    assert given["M"] % 16 == 4099 % 16
    assert given["a"].strides == (given["stride"] * 2, 2)
    assert not given["stride"] % 8
    assert given["stride"] > 64


def test_constants_and_small_extents_stay():
    given = first(1, q=Meta(4, 16, 8192, 128), LENGTH=8192, D=constexpr(128), stride_head=8192 * 128).arguments
    assert given["q"].shape == (4, 16, given["LENGTH"], 128)
    assert given["LENGTH"] < 1024
    assert given["stride_head"] == given["LENGTH"] * 128
    given = first(1, q=Meta(16, 8192), N=constexpr(8192)).arguments
    assert given["q"].shape == (16, 8192)


def test_arrays_of_integers_are_taken_as_they_are():
    offsets = np.array([0, 3, 9], np.int32)
    given = first(1, offsets=offsets, x=np.zeros((9, 2048), np.float16), N=2048).arguments
    assert np.array_equal(given["offsets"], offsets)
    assert given["offsets"] is not offsets
    assert given["x"].shape == (9, 2048)
    assert not list(small_launches(1, {"offsets": Meta(3, dtype="torch.int32")}))


def test_extents_in_which_no_integers_count_become_smaller():
    """The numbers may be rows of a table, and ends of what has 8192 rows, but no columns."""
    index, ends = np.array([5, 8191], np.int32), np.array([100, 8192], np.int32)
    named = {"table": Meta(8192, 4096), "out": Meta(2, 8192), "K": 4096, "rows": 8192}
    given = first(1, index=index, **named).arguments
    assert given["K"] < 1024
    assert given["table"].shape == (8192, given["K"])
    assert (given["rows"], given["out"].shape) == (8192, (2, 8192))
    given = first(1, index=index, ends=ends, **named).arguments
    assert given["table"].shape == (8192, given["K"])
    assert first(1, index=np.array([5, 4000], np.int32), **named).arguments["K"] == 4096


def test_many_heads_become_few():
    given = first(1, q=Meta(64, 100, 4096, 128), heads=100, length=4096).arguments
    assert given["q"].size <= 1 << 24
    assert given["q"].shape[1] == given["heads"]


def test_descriptors_are_of_the_small_array():
    array = np.zeros((4096, 2048), np.float16)
    given = first(1, a=TensorDescriptor.from_tensor(array, [64, 32]), M=4096).arguments
    descriptor = given["a"]
    assert descriptor.shape == [given["M"], descriptor.strides[0]]
    assert (descriptor.block_shape, descriptor.base.shape) == ([64, 32], tuple(descriptor.shape))


def test_copies_have_memory_and_strides_of_their_own():
    found = first(1, a=Meta(4096, 64, strides=(72, 1)))
    copy = found.copied()["a"]
    assert not np.shares_memory(copy, found.arguments["a"])
    assert copy.strides == found.arguments["a"].strides
    assert np.array_equal(copy, found.arguments["a"])
