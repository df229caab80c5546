"""`kernel.predict` and `kernel.timeline`: what the clock is asked, with a stand-in in its place."""

from __future__ import annotations

import numpy as np
import pytest

import tlx_xdsl
from tests.unit.runtime.clock.stand_in import StandIn, add, tasks
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.clock.stand_ins import standing_in
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor
from tlx_xdsl.timing import predict as clock

pytestmark = pytest.mark.backend


@pytest.fixture
def stand_in(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("TLX_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    found = StandIn()
    monkeypatch.setattr(clock, "predict", found)
    return found


class Meta:
    """Stand-in for a tensor of torch's device `meta`, as much as is looked at: it has no memory."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype
        self.device = type("Device", (), {"type": "meta"})()

    def element_size(self):
        return 2

    def stride(self):
        return tuple(int(np.prod(self.shape[at + 1 :])) for at in range(len(self.shape)))


def test_a_launch_is_asked_for_with_its_final_code(stand_in):
    x, out = np.ones(4096, np.float32), np.zeros(4096, np.float32)
    found = add.predict(lambda at: at["n"] // at["BLOCK"], x, x, out, 4096, BLOCK=1024, num_warps=2, chip="H100")
    assert found.cycles == 100_000.0
    (asked,) = stand_in.asked
    assert (asked["grid"], asked["chip"], asked["num_warps"], asked["cluster"]) == ((4, 1, 1), "H100", 2, (1, 1, 1))
    assert asked["args"][3] == 4096
    assert all(given is array for given, array in zip(asked["args"], (x, x, out), strict=False))
    assert ".entry add(" in asked["text"]
    assert asked["registers"] > 0
    assert "/*0000*/" in asked["machine_code"]
    assert not asked["timeline"]
    assert not out.any()


def test_a_timeline_has_the_tasks_and_the_time_of_the_launch(stand_in):
    a, b = (TensorDescriptor.from_tensor(np.zeros((256, 64), np.float16), [64, 64]) for _ in range(2))
    found = tasks.timeline(1, a, b, TILES=4, SLOTS=4, hertz=1e9)
    (asked,) = stand_in.asked
    # Stock Triton gives the first warps after those of the default task to the tasks with most of them.
    assert asked["tasks"] == [(0, 4, "default"), (4, 4, "partition 1"), (8, 1, "partition 0")]
    # And it adds warps that do nothing, up to whole warp groups.
    assert asked["num_warps"] == 12
    assert (found.launch_cycles, found.hertz, found.chip) == (100_000.0, 1e9, "H200")
    assert found.spans


def test_arguments_need_no_memory(stand_in):
    meta = Meta((1 << 20, 1 << 14), "torch.float16")
    add.predict(4, meta, meta, meta, 1 << 34, BLOCK=1024)
    given = stand_in.asked[0]["args"][0]
    assert given.nbytes == 1 << 35
    assert given.strides == (1 << 15, 2)
    assert not given[-1].any()


def test_what_is_in_memory_is_taken_as_it_is():
    index = np.arange(5)
    view = np.zeros((8, 8), np.float16)[::2]
    descriptor = TensorDescriptor.from_tensor(Meta((64, 64), "torch.bfloat16"), [16, 16])
    found = standing_in({"i": index, "x": (view, 3), "d": descriptor, "n": 7, "none": None})
    assert found["i"] is index
    assert found["x"][0] is view
    assert (found["x"][1], found["n"], found["none"]) == (3, 7, None)
    assert found["d"].base.shape == (64, 64)
    assert found["d"].base.dtype.itemsize == 2
    assert found["d"].block_shape == [16, 16]


def test_what_does_not_fit_is_refused(stand_in):
    x = np.zeros(64, np.float32)
    with pytest.raises(CompilationError, match="no GPU of sm_80: it has sm_90"):
        add.predict(1, x, x, x, 64, BLOCK=64, target="sm_80")
    with pytest.raises(CompilationError, match="no constants of 'H900', only of H200"):
        add.predict(1, x, x, x, 64, BLOCK=64, chip="H900")
    with pytest.raises(ValueError, match="the grid 0x1x1 has no programs"):
        add.predict(0, x, x, x, 64, BLOCK=64)
    with pytest.raises(TypeError, match="has no parameter 'BLOK', did you mean 'BLOCK'"):
        add.timeline(1, x, x, x, 64, BLOK=64)
    with pytest.raises(CompilationError, match="must have a power of two of elements, found 65"):
        add.predict(1, x, x, x, 64, BLOCK=65)
    assert not stand_in.asked


def test_the_model_of_an_autotuner_gets_all_by_name(stand_in):
    x = np.zeros(64, np.float32)
    model = tlx_xdsl.clock(add)
    named = {"x": x, "y": x, "out": x, "n": 64, "BLOCK": 32, "num_warps": 1, "num_stages": 3, "warmup": False}
    assert (
        model(**named, grid=lambda at: (at["n"] // at["BLOCK"],)) == 0.05
    )  # milliseconds: launches differ in their clocks
    assert stand_in.asked[0]["grid"] == (2, 1, 1)
    assert stand_in.asked[0]["num_warps"] == 1
    assert model(**{**named, "BLOCK": 33}, grid=(2,)) == float("inf")
    with pytest.raises(TypeError, match=r"clock: this autotuner does not say which kernel"):
        tlx_xdsl.clock(**named, grid=(2,))
