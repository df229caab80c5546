"""Tensors in shards of rows, of columns and of both, in L1 and DRAM, as `ttnn.MemoryConfig` says it."""

# covers: ttl.tensors

import numpy as np
import pytest
import tlx_xdsl.language.ttl as ttl

from tests.fuzz.ttl import has_compiler
from tlx_xdsl.errors import CompilationError, InputError
from tlx_xdsl.tools.tlx import main
from tlx_xdsl.ttl.runtime import specs_of
from tlx_xdsl.ttl.runtime.memory_config import MemoryConfig, memory_named, placed

MACHINES = [each for each in ("tensors", "ttkernel", "cpp") if each != "cpp" or has_compiler()]


@ttl.kernel(grid=(1, 1))
def double(x, out):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(2, 1))
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(2, 1))

    @ttl.datamovement()
    def read():
        for j in range(4):
            with x_dfb.reserve() as blk:
                ttl.copy(x[1:3, j : j + 1], blk)

    @ttl.compute()
    def compute():
        for _ in range(4):
            with x_dfb.wait() as blk, out_dfb.reserve() as o:
                o.store(blk * 2.0)

    @ttl.datamovement()
    def write():
        for j in range(4):
            with out_dfb.wait() as o:
                ttl.copy(o, out[1:3, j : j + 1])


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("memory", ["height_sharded[32,128]@l1", "width_sharded[128,64]@dram", "block_sharded[64,96]"])
def test_strategies(memory, machine):
    x = np.random.default_rng(0).integers(-9, 9, (128, 128)).astype(np.float32)
    out = np.zeros_like(x)
    double(placed(x, memory_named(memory)), placed(out, memory_named("l1")), machine=machine)
    np.testing.assert_array_equal(out[32:96], 2 * x[32:96])
    assert not out[:32].any()
    assert not out[96:].any()


def test_layouts_of_memory_configurations():
    x = np.zeros((2, 64, 128), np.float32)
    words = ("height_sharded[32,128]", "width_sharded[128,32]@dram", "block_sharded[64,64]", "dram", "l1")
    found = [specs_of(double, [placed(x, memory_named(text)), x])[0] for text in words]
    assert [str(each.layout) for each in found] == [
        "ttl.sharded(grid=(4, 1), tiles_per_shard=(1, 4))",
        "ttl.sharded(grid=(1, 4), tiles_per_shard=(4, 1))",
        "ttl.sharded(grid=(2, 2), tiles_per_shard=(2, 2))",
        "ttl.tiled",
        "ttl.tiled",
    ]
    assert [each.memory_space for each in found] == ["L1", "DRAM", "L1", "DRAM", "L1"]
    assert memory_named("dram") == MemoryConfig()


def test_annotations_have_memory_configurations():
    words = ("height_sharded[32,128]", "block_sharded[64,64]@dram", "l1")
    shape = (2, 64, 128)
    for text in words:
        memory = memory_named(text)
        x = np.zeros(shape, np.float32)
        (found, *_) = specs_of(double, [placed(x, memory), x])
        assert ttl.tensor(shape, memory_config=memory) == found
    rows = ttl.tensor(shape, ttl.bfloat16, ttl.interleaved, memory_config=memory_named("l1"))
    assert (rows.layout, rows.memory_space) == (ttl.interleaved, "L1")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layout": ttl.sharded((2, 2), (2, 2))}, "'memory_config' says the shards and the memory of a tensor"),
        ({"memory_space": "L1"}, "'memory_config' says the shards and the memory of a tensor"),
        ({"layout": ttl.interleaved}, "'memory_config' has shards that are not of tiles"),
    ],
)
def test_annotations_that_say_a_thing_twice(options, said):
    with pytest.raises(InputError, match=said):
        ttl.tensor((128, 128), memory_config=memory_named("block_sharded[64,64]"), **options)


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ("height_sharded[32,64]", "'x' is HEIGHT_SHARDED: a shard has all columns, found a grid of"),
        ("width_sharded[32,128]", "'x' is WIDTH_SHARDED: a shard has all rows, found a grid of"),
        ("block_sharded[30,64]", "shards of 30x64 elements: expected multiples of 32"),
    ],
)
def test_shards_that_are_none(memory, said):
    x = np.zeros((128, 128), np.float32)
    with pytest.raises(CompilationError, match=said) as error:
        double(placed(x, memory_named(memory)), x)
    assert error.value.location.filename == __file__


def test_words_of_the_command_line(tmp_path, capsys):
    with pytest.raises(InputError, match=r"expected l1, dram, or height_sharded\[ROWS,COLUMNS\]"):
        memory_named("sharded")
    command = ["ttl", "run", f"{__file__}:double", "--arg", "x=ones[128,128]", "--arg", "out=zeros[128,128]"]
    main([*command, "--memory", "x=block_sharded[64,64]@l1"])
    assert "out: " in capsys.readouterr().out
