"""Files of tt-lang's tutorials: they open a device and run their kernel at the level of the module."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl.ttl.language as ttl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.ttl.runtime import compile_kernel, run
from tlx_xdsl.ttl.runtime.stand_in import Nothing
from tlx_xdsl.ttl.tools.kernels import load_ttl_kernel

TUTORIAL = """
import ttnn
import torch
from torch.nn import functional
from ttl.utils.correctness import assert_pcc


def from_torch(tensor: torch.Tensor):
    return ttnn.from_torch(tensor, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)


import ttl
from ttl import ttl as again

TILE = 32


@torch.no_grad()
def reference(x):
    return functional.relu(x)


class Model(torch.nn.Module):
    pass


@ttl.operation(grid=(1, 1))
def doubled(a: ttnn.Tensor, y: ttnn.Tensor) -> None:
    rows = a.shape[0] // TILE
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    y_dfb = again.make_dataflow_buffer_like(y, shape=(1, 1))

    @ttl.datamovement()
    def read():
        for row in range(rows):
            with ttl.signpost("read"), a_dfb.reserve() as x:
                ttl.copy(a[row, 0], x).wait()

    @ttl.compute()
    def compute():
        for _ in range(rows):
            with a_dfb.wait() as x, y_dfb.reserve() as y_block:
                y_block.store(x + x)

    @ttl.datamovement()
    def write():
        for row in range(rows):
            with y_dfb.wait() as y_block:
                ttl.copy(y_block, y[row, 0]).wait()


torch.manual_seed(42)
device = ttnn.open_device(device_id=0)
assert device.count() & (device.count() - 1) == 0
try:
    a = torch.rand((8192, 8192), dtype=torch.bfloat16)
    y = torch.zeros_like(a)
    doubled(from_torch(a), from_torch(y))
    y = ttnn.to_torch(y)
    pcc = torch.corrcoef(torch.stack([a.flatten(), y.flatten()]))[0, 1].item()
    print(f"PCC {pcc:.6f}")
    assert pcc > 0.99 and torch.allclose(2.0 * a, y, rtol=1e-2)
    assert_pcc(reference(a), y)
finally:
    ttnn.close_device(device)
"""

WITHOUT_TTNN = importlib.util.find_spec("ttnn") is None


@pytest.mark.skipif(not WITHOUT_TTNN, reason="ttnn is installed: the file would open a device")
def test_a_tutorial_is_loaded_for_its_kernel(tmp_path: Path) -> None:
    path = tmp_path / "tutorial.py"
    path.write_text(TUTORIAL, encoding="utf-8")
    kernel = load_ttl_kernel(f"{path}:doubled")
    a = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    y = np.full_like(a, np.nan)
    run(kernel, a, y, machine="tensors")
    np.testing.assert_array_equal(y, 2 * a)


@pytest.mark.skipif(not WITHOUT_TTNN, reason="ttnn is installed: the file would open a device")
def test_what_is_not_there_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    text = TUTORIAL.replace("TILE = 32", "TILE = ttnn.TILE_SIZE")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CompilationError, match=r"ttnn\.TILE_SIZE"):
        compile_kernel(load_ttl_kernel(f"{path}:doubled"), [ttl.TensorSpec((64, 32))] * 2)


def test_nothing_has_every_operation() -> None:
    nothing = Nothing("device")
    assert str(nothing.grid[0]) == "device.grid[...]"
    assert list(range(nothing)) == []
    assert bool(nothing == 3)
    assert bool(nothing >= 1)
    with nothing as entered:
        assert entered is nothing
    assert f"{-nothing + 1:.3f}" == "device......"


@ttl.operation(
    grid=(2, 3), options="--no-ttl-maximize-dst --ttl-l1-budget 1000", math_fidelity="HiFi2", fp32_dest_acc_en=None
)
def with_options(a):
    ttl.make_dfb("bf16", shape=(1, 1))

    @ttl.datamovement()
    def read():
        pass


def test_the_grid_on_the_host() -> None:
    """The grid is the compiled kernel's."""
    compile_frontend(with_options)
    assert ttl.grid_size() == (2, 3)
    assert ttl.grid_size(dims=1) == 6
    with pytest.raises(ValueError, match="'dims' is 1 or 2, found 3"):
        ttl.grid_size(dims=3)


def compile_frontend(kernel: ttl.Kernel) -> None:
    from tlx_xdsl.ttl.frontend import compile_kernel as frontend

    frontend(kernel, [ttl.TensorSpec((32, 32))])


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "options",
            "--ttl-maximise-dst",
            "'options' has no option '--ttl-maximise-dst', did you mean '--ttl-maximize-dst'?",
        ),
        ("options", 3, "'options' is a text such as '--no-ttl-maximize-dst', found 3"),
        ("math_fidelity", "HiFi5", "'math_fidelity' is one of LoFi, HiFi2, HiFi3, HiFi4, found 'HiFi5'"),
    ],
)
def test_wrong_options(option: str, value: object, message: str) -> None:
    kernel = ttl.operation(with_options.fn, grid=(1, 1), **{option: value})
    with pytest.raises(CompilationError) as caught:
        compile_frontend(kernel)
    assert message in caught.value.message


def test_names_of_tt_lang_that_are_not_here() -> None:
    @ttl.operation(grid=(1, 1))
    def kernel(a):
        @ttl.datamovement()
        def read():
            ttl.read_index(a, 0, 0)

    with pytest.raises(CompilationError, match="'ttl' has no 'read_index': a thread moves blocks"):
        compile_frontend(kernel)
