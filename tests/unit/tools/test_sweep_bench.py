"""`tlx sweep --bench` where there is no GPU: order, files, command lines; and the part of the GPU, played."""

from __future__ import annotations

import json
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime import bench, compile_many, sweep_jobs
from tlx_xdsl.runtime.driver.specialization import Specialization
from tlx_xdsl.runtime.sweep import measure as bench_module
from tlx_xdsl.tools.tlx import main

pytestmark = pytest.mark.backend

KERNEL = """import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, at < n), at < n)
"""
SET = ["--set", "BLOCK=64,100,256"]
ARGUMENTS = ["--arg", "x=ones:fp32[4096]", "--arg", "y=nan:fp32[4096]", "--size", "n=4096", "--grid", "cdiv(n, BLOCK)"]


@pytest.fixture
def sweep(in_this_process, tmp_path, monkeypatch, capsys):
    """Sweeps the kernel, in this process; the exit status and both streams."""
    monkeypatch.chdir(tmp_path)
    Path("scale.py").write_text(KERNEL)

    def run(*options):
        status = main(["sweep", "scale.py:scale", *options])
        return status, *capsys.readouterr()

    return run


def test_configurations_are_ranked_and_that_is_said(sweep):
    status, out, _ = sweep(*SET, "--bench", *ARGUMENTS, "--csv", "times.csv", "--plot", "out/times.svg")
    assert status == 0
    head, *rows, summary = out.splitlines()
    assert head.split() == ["ms", "20", "to", "80", "%", "of", "best", "BLOCK"]
    assert [row.split()[3] for row in rows] == ["64", "256", "100"]
    assert "must have a power of two of elements, found 100" in rows[-1]
    assert "2 of 3 configurations estimated for sm_90a: nothing was measured, for there is no GPU here" in summary
    assert Path("times.csv").read_text().splitlines()[1].startswith("64,")
    assert Path("out/times.svg").read_text().startswith("<svg")


def test_json_and_a_check_that_can_not_be_made(sweep):
    status, out, err = sweep("--set", "BLOCK=64", "--bench", *ARGUMENTS, "--check", "y=2*x", "--json")
    assert status == 0
    found = json.loads(out)
    assert (found["source"], found["checked"]) == ("estimated", False)
    assert "note: --check: nothing is compared where nothing is launched" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bench"], "--bench: launches have a grid: give --grid"),
        (["--grid", "4"], "--grid: only with --bench"),
        (["--csv", "times.csv"], "--csv: only with --bench"),
        (["--bench", *ARGUMENTS, "--check", "z=x"], "--check: there is no array 'z', the arrays are x, y"),
    ],
)
def test_a_command_line_that_does_not_fit_is_refused(sweep, options, message):
    types = ["--signature", "x=*fp32", "--signature", "y=*fp32", "--signature", "n=i32"]
    status, _, err = sweep("--set", "BLOCK=64", *(types if "--bench" not in options[:1] or len(options) == 1 else []),
                           *options)  # fmt: skip
    assert status == 1
    assert message in err


@tlx_xdsl.jit
def fill(x, VALUE: tl.constexpr):
    tl.store(x + tl.arange(0, 16), VALUE * 1.0)


@pytest.fixture
def report():
    jobs = sweep_jobs(fill, Specialization({"x": "*fp32"}), {"VALUE": (1, 2)})
    with ThreadPoolExecutor(1) as pool:
        return compile_many(jobs, pool)


class Tensor:
    """Stand-in with as much of a tensor of torch as the bench looks at."""

    def __init__(self, array):
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def clone(self):
        return Tensor(self.array.copy())

    def copy_(self, other):
        self.array[...] = other.array


def test_on_a_gpu_what_computes_something_else_has_no_time(report, monkeypatch):
    """Launches write their constant; torch, the clock and the driver are played."""
    written = []

    class Launcher:
        def __init__(self, cubin, **facts):
            assert cubin

        def bind(self, grid, tensor, stream):
            assert grid == (3, 1, 1)
            value = len(written) + 1
            written.append(value)
            return lambda: tensor.array.fill(value)

    torch = types.SimpleNamespace(
        cuda=types.SimpleNamespace(synchronize=lambda: None, current_stream=lambda: 7), from_numpy=lambda array: array
    )
    monkeypatch.setattr(bench_module, "available", lambda: True)
    monkeypatch.setattr(bench_module, "find_spec", lambda name: name)
    monkeypatch.setattr(bench_module, "import_module", lambda name: torch)
    monkeypatch.setattr(bench_module, "Launcher", Launcher)
    monkeypatch.setattr(bench_module._Bench, "_on_gpu", lambda self, array: Tensor(array.copy()))
    monkeypatch.setattr(bench_module, "poison", lambda tensors: [each.array.fill(np.nan) for each in tensors.values()])
    monkeypatch.setattr(
        bench_module, "difference",
        lambda found, expected, _: None if np.array_equal(found["x"].array, expected["x"]) else "x is wrong",
    )  # fmt: skip
    monkeypatch.setattr(bench_module, "timed_launches", lambda launch, seconds: (launch(), (1.0, 2.0, 3.0))[1])
    monkeypatch.setattr(
        bench_module, "default_driver", lambda: types.SimpleNamespace(device_name=lambda ordinal: "GPU")
    )
    x = np.zeros(16, np.float32)
    found = bench(report, 3, {"x": x}, reference=lambda at: {"x": np.full(16, 2.0)})
    assert [(each.settings["VALUE"], each.milliseconds, each.remark) for each in found.speeds] == [
        (2, (2.0, pytest.approx(1.4), pytest.approx(2.6)), ""),
        (1, None, "x is wrong"),
    ]
    assert (found.source, found.device, found.checked) == ("measured", "GPU", True)
    assert not x.any()


def test_a_gpu_without_torch_is_refused(report, monkeypatch):
    monkeypatch.setattr(bench_module, "available", lambda: True)
    monkeypatch.setattr(bench_module, "find_spec", lambda name: None)
    with pytest.raises(CompilationError, match="by torch, which is not installed"):
        bench(report, 3, {"x": np.zeros(16, np.float32)})
