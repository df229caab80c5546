"""Programs for a card: what `ttnn.generic_op` gets of a kernel, on a module that records it."""

import sys
from typing import Any

import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tests.unit.ttl.runtime import ttnn_stand_in as stand_in
from tlx_xdsl.errors import InputError
from tlx_xdsl.tools.tlx import main
from tlx_xdsl.ttl.language.tensors import sharded, tiled
from tlx_xdsl.ttl.runtime import specs_of
from tlx_xdsl.ttl.runtime.launch import to_device

ROW = (slice(1, 4), 0)


def relay(grid: Any = (4, 1), fp32: bool = False) -> Any:
    """A kernel of all parts: a pipe with semaphores, two ways to read f32, and both networks."""

    @ttl.kernel(grid=grid, fp32_dest_acc_en=fp32)
    def relayed(a, b, out):
        a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
        b_cb = ttl.make_circular_buffer_like(b, shape=(1, 1))
        out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))
        net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst_range=ROW)])
        x, _ = ttl.core(dims=2)

        @ttl.datamovement()
        def read():
            with a_cb.reserve() as block:
                if x == 0:
                    ttl.copy(a[0, 0], block).wait()
                net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
                net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
            with b_cb.reserve() as block:
                ttl.copy(b[0, x], block).wait()

        @ttl.compute()
        def compute():
            with a_cb.wait() as first, b_cb.wait() as second, out_cb.reserve() as o:
                o.store(ttl.math.transpose(first) + second)

        @ttl.datamovement()
        def write():
            with out_cb.wait() as block:
                ttl.copy(block, out[0, x]).wait()

    return relayed


@pytest.fixture
def ttnn(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = stand_in.module()
    monkeypatch.setitem(sys.modules, "ttnn", module)
    return module


def tensors(device: Any, *shapes: tuple[int, int], dtype: Any = stand_in.DataType.FLOAT32) -> list[stand_in.Tensor]:
    return [stand_in.Tensor(np.zeros(shape, np.float32), dtype, device) for shape in shapes]


def test_a_program_has_all_that_the_manifest_says(ttnn: Any) -> None:
    given = tensors(stand_in.Device(), (32, 32), (32, 128), (32, 128))
    assert relay().launch_ttnn(*given) is given[-1]
    ((io, program),) = ttnn.programs
    assert io == given
    compute, read, write = (next(k for k in program.kernels if f"// {n}:" in k.kernel_source) for n in
                            ("compute", "read", "write"))  # fmt: skip
    cores = stand_in.CoreRangeSet([stand_in.CoreRange(stand_in.CoreCoord(0, 0), stand_in.CoreCoord(3, 0))])
    assert all(each.core_ranges == cores for each in (*program.kernels, *program.cbs, *program.semaphores))
    buffers = len(program.cbs)
    assert compute.compile_time_args == list(range(buffers))
    assert read.compile_time_args == write.compile_time_args == [*range(buffers), *(2, 4096) * 3]
    assert read.common_runtime_args == [each.buffer_address() for each in given[:2]]
    assert write.common_runtime_args == [given[2].buffer_address()]
    assert read.config.processor is stand_in.DataMovementProcessor.RISCV_1
    assert write.config.processor is stand_in.DataMovementProcessor.RISCV_0
    assert (read.config.noc, write.config.noc) == (stand_in.NOC.RISCV_0_default, stand_in.NOC.RISCV_1_default)
    assert sorted((each.id, each.initial_value) for each in program.semaphores) == [(0, 0), (1, 0)]
    assert [(b.total_size, b.format_descriptors[0].page_size) for b in program.cbs[:3]] == [(8192, 4096)] * 3


def test_f32_goes_straight_to_registers_where_nothing_else_reads_it(ttnn: Any) -> None:
    """The transposed buffer is an operand of the matrix unit."""
    relay().launch_ttnn(*tensors(stand_in.Device(), (32, 32), (32, 128), (32, 128)))
    (_, program), config = ttnn.programs[0], None
    config = next(k.config for k in program.kernels if isinstance(k.config, stand_in.ComputeConfigDescriptor))
    assert config.fp32_dest_acc_en
    modes = stand_in.UnpackToDestMode
    assert config.unpack_to_dest_mode[:2] == [modes.Default, modes.UnpackToDestFp32]


def test_a_kernel_is_compiled_once_for_tensors_alike_and_for_the_chip(ttnn: Any) -> None:
    kernel = relay()
    for chip in stand_in.Arch:
        for _ in range(2):
            kernel.launch_ttnn(*tensors(stand_in.Device(0, chip), (32, 32), (32, 128), (32, 128)))
    sources = [[each.kernel_source for each in program.kernels] for _, program in ttnn.programs]
    assert sources[0] == sources[1]
    assert sources[2] == sources[3]


def test_bf16_needs_no_modes(ttnn: Any) -> None:
    kind = stand_in.DataType.BFLOAT16
    relay().launch_ttnn(*tensors(stand_in.Device(), (32, 32), (32, 128), (32, 128), dtype=kind))
    (_, program) = ttnn.programs[0]
    configs = [k.config for k in program.kernels if isinstance(k.config, stand_in.ComputeConfigDescriptor)]
    assert [each.unpack_to_dest_mode for each in configs] == [[]]
    assert [each.format_descriptors[0].data_format for each in program.cbs[:3]] == [kind] * 3


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ((None, 0, 0), "'a' is on the host: a launch needs tensors on a device"),
        ((0, 0, 1), "'a' and 'out' are on different devices"),
    ],
)
def test_tensors_must_be_on_one_device(ttnn: Any, devices: tuple[int | None, ...], message: str) -> None:
    places = [None if each is None else stand_in.Device(each) for each in devices]
    given = [tensors(place, (32, 128))[0] for place in places]
    with pytest.raises(InputError, match=message):
        relay().launch_ttnn(*given)


def test_without_ttnn_there_is_no_launch() -> None:
    with pytest.raises(InputError, match="needs the package ttnn"):
        relay().launch_ttnn(1, 2, 3)


def test_a_tensor_says_where_it_lies() -> None:
    memory, kinds, buffer = stand_in.MemoryConfig, stand_in.TensorMemoryLayout, stand_in.BufferType
    places = [
        memory(buffer_type=buffer.L1),
        memory(kinds.HEIGHT_SHARDED, buffer.L1, stand_in.ShardSpec([32, 128])),
        memory(kinds.BLOCK_SHARDED, buffer.DRAM, stand_in.ShardSpec([32, 64])),
        memory(buffer.L1, stand_in.NdShardSpec([64, 64], stand_in.CoreRangeSet([]))),
    ]
    given = [stand_in.Tensor(np.zeros((64, 128)), stand_in.DataType.BFLOAT16, None, None, each) for each in places]
    found = [(each.layout, each.memory_space) for each in (specs_of(relay(), [tensor] * 3)[0] for tensor in given)]
    assert found[:2] == [(tiled, "L1"), (sharded((2, 1), (1, 4)), "L1")]
    assert found[2:] == [(sharded((2, 2), (1, 2)), "DRAM"), (sharded((1, 2), (2, 2)), "L1")]


@pytest.mark.parametrize(("space", "banks"), [("DRAM", (12, 1)), ("L1", (1, 2))])
def test_an_array_is_put_where_its_spec_says(ttnn: Any, space: str, banks: tuple[int, int]) -> None:
    spec = ttl.tensor((64, 64), layout=sharded((2, 1), (1, 2)), memory_space=space)
    tensor = to_device(stand_in.Device(), "a", np.zeros((64, 64), np.float32), spec)
    shards = tensor.memory_config().nd_shard_spec
    assert (shards.shard_shape, shards.grid.ranges[0].end) == ([32, 64], stand_in.CoreCoord(banks[0] - 1, banks[1] - 1))
    assert [(each.layout, each.memory_space) for each in specs_of(relay(), [tensor] * 3)] == [(spec.layout, space)] * 3


KERNEL = """
import tlx_xdsl.language.ttl as ttl


@ttl.kernel(grid=(1, 1))
def double(a, out):
    a_cb = ttl.make_circular_buffer_like(a, shape=(1, 1))
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1))

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as x:
            ttl.copy(a[0, 0], x).wait()

    @ttl.compute()
    def compute():
        with a_cb.wait() as x, out_cb.reserve() as o:
            o.store(x + x)

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0, 0]).wait()
"""


def _double(a: np.ndarray, out: np.ndarray) -> None:
    out[...] = a + a


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_the_command_copies_there_and_back(monkeypatch: Any, tmp_path: Any, capsys: Any, dtype: str) -> None:
    module = stand_in.module(_double)
    monkeypatch.setitem(sys.modules, "ttnn", module)
    path = tmp_path / "double.py"
    path.write_text(KERNEL)
    values = ["--arg", f"a=randn:{dtype}[32,32]", "--arg", f"out=nan:{dtype}[32,32]", "--check", "out=a+a"]
    assert main(["ttl", "launch", str(path), *values]) == 0
    assert "run on the card 0" in capsys.readouterr().out
    assert [each.is_open for each in module.devices] == [False]
    (io, _) = module.programs[0]
    assert io[0].array.dtype == np.float32


def test_the_command_says_what_ttnn_says(monkeypatch: Any, tmp_path: Any, capsys: Any) -> None:
    def refuse(*arrays: np.ndarray) -> None:
        raise RuntimeError("TT_FATAL @ x.cpp:1: chips > 0\ninfo:\nNo chips\nbacktrace:\n --- f()")

    monkeypatch.setitem(sys.modules, "ttnn", stand_in.module(refuse))
    path = tmp_path / "double.py"
    path.write_text(KERNEL)
    assert main(["ttl", "launch", str(path), "--arg", "a=randn[32,32]", "--arg", "out=nan[32,32]"]) == 1
    assert capsys.readouterr().err.strip() == "error: ttnn: TT_FATAL @ x.cpp:1: chips > 0 info: No chips"
