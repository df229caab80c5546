"""Kernels with Triton installed: what goes to the CPU, and that the rest goes to Triton as before."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")
pytest.importorskip("llvmlite")

import triton

import tlx_xdsl
from tests.unit.cpu.runtime import cpu_kernels as kernels
from tests.unit.runtime.jit.jit_kernels import FakeTensor
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.runtime.host.memory import are_in_cpu_memory
from tlx_xdsl.runtime.jit.stand_in_driver import assume_target
from tlx_xdsl.runtime.jit.triton_kernel import TritonKernel

pytestmark = pytest.mark.backend


def arrays(size: int = 1000) -> list[Any]:
    return [np.arange(size, dtype=np.float32) for _ in range(3)]


def on(device: str) -> Any:
    return SimpleNamespace(device=SimpleNamespace(type=device), dtype="float32", shape=(1,))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([np.zeros(1), 5], True), ([5, on("cpu")], True), ([5, 2.5, None], False), ([on("cpu"), on("cuda")], False),
        ([np.zeros(1), (5, on("cuda"))], False), ([(5, on("cpu"))], True), ([on("meta")], False),
        ([SimpleNamespace(block_shape=[4], base=on("cuda"))], False), ([FakeTensor(4)], False),
        ([SimpleNamespace(block_shape=[4], base=np.zeros(4))], True),
        ([np.zeros(1), SimpleNamespace(__cuda_array_interface__={})], False),
    ],
)  # fmt: skip
def test_where_arguments_are(values: Any, expected: bool):
    assert are_in_cpu_memory(values) is expected


def test_arrays_go_to_the_cpu_and_others_to_triton():
    kernel = tlx_xdsl.jit(kernels.add)
    assert isinstance(kernel, TritonKernel)
    x, y, z = arrays()
    kernel[(8,)](x, y, z, 1000, num_warps=8)
    assert (z == x + y).all()
    z[:] = 0
    kernel.run(x, y, z, 1000, grid=(8,), warmup=False)
    assert (z == x + y).all()
    bound = kernel.bind((8,), x, y, z, 1000)
    x += 1
    bound()
    assert (z == x + y).all()
    with assume_target("sm_90a"):
        compiled = kernel.warmup(*(FakeTensor(1024) for _ in range(3)), 1000, grid=(1,))
    assert "ptx" in compiled.asm
    assert kernel.warmup(x, y, z, 1000, grid=(1,)).metadata.name == "add"


def test_the_target_can_be_said(monkeypatch):
    x, y, z = arrays()
    kernel = tlx_xdsl.jit(kernels.add, target="gpu")
    monkeypatch.setattr(kernel, "run_there", lambda *args, **kwargs: "there")
    monkeypatch.setattr("tlx_xdsl.runtime.jit.triton_kernel._launch", lambda *args, **kwargs: "there")
    assert kernel[(8,)](x, y, z, 1000) == "there"
    kernel[(8,)](x, y, z, 1000, target="cpu")
    assert (z == x + y).all()
    assert kernel[(8,)](x, y, z, 1000, target="gpu") == "there"
    with pytest.raises(ValueError, match="unknown target 'xpu'"):
        kernel[(8,)](x, y, z, 1000, target="xpu")


def test_errors_are_those_of_triton_too():
    with pytest.raises(triton.CompilationError) as caught:
        tlx_xdsl.jit(kernels.shares)[(1,)](np.zeros(1, np.float32))
    assert isinstance(caught.value, tlx_xdsl.CompilationError)
    with pytest.raises(triton.CompilationError) as caught:
        tlx_xdsl.jit(kernels.add)[(8,)](*arrays(999), 1000, checks=True)
    assert isinstance(caught.value, Fault)


def test_pre_run_hooks_are_called_on_the_cpu():
    seen: list[Any] = []
    kernel = tlx_xdsl.jit(kernels.add)
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs))
    kernel[(8,)](*arrays(), n=1000)
    assert seen == [{"n": 1000}]


@pytest.mark.parametrize("tune", [tlx_xdsl.autotune, functools.partial(tlx_xdsl.autotune, rep=2, warmup=1)])
@pytest.mark.filterwarnings("ignore:warmup, rep, and use_cuda_graph")
def test_autotuners_measure_the_cpu(tune: Any):
    x, y, z = arrays(5000)
    configs = [tlx_xdsl.Config({"BLOCK": block}) for block in (64, 1024)]
    tuner = tune(configs, key=["n"])(tlx_xdsl.jit(kernels.add))
    tuner[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, z, 5000)
    assert (z == x + y).all()
    assert set(tuner.on_cpu.configs_timings) == set(configs)
    assert tuner.best_config in configs


def test_heuristics_of_triton():
    x, y, z = arrays()
    tlx_xdsl.heuristics({"BLOCK": lambda named: 1024})(tlx_xdsl.jit(kernels.add))[(1,)](x, y, z, 1000)
    assert (z == x + y).all()


def test_a_kernel_that_triton_refuses_runs_on_the_cpu(monkeypatch):
    def refuse(*_, **__):
        raise TypeError("not by me")

    # Triton looks for `def NAME(` by a regular expression, and a later version may look for more.
    monkeypatch.setattr(triton.runtime.jit.JITFunction, "__init__", refuse)
    kernel = tlx_xdsl.jit(kernels.add)
    assert not isinstance(kernel, TritonKernel)
    x, y, z = arrays()
    kernel[(8,)](x, y, z, 1000)
    assert (z == x + y).all()
    with pytest.raises(tlx_xdsl.CompilationError, match="can't be launched: Triton said TypeError"):
        kernel[(8,)](*(FakeTensor(4) for _ in range(3)), 1000)
