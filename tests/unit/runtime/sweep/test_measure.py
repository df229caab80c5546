"""The benchmarks' measuring library, on a fake torch that records the order of events."""

import math
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu import measure

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[4]


class FakeTorch(types.ModuleType):
    """The few functions of torch that measuring uses. Every launch takes `ms`; events read that clock."""

    int8 = "int8"

    def __init__(self):
        super().__init__("torch")
        self.log = []
        self.now = 0.0
        self.finished = True
        self.cuda = types.SimpleNamespace(
            Event=lambda enable_timing=False: FakeEvent(self), synchronize=lambda: self.log.append("sync")
        )

    def empty(self, size, dtype, device):
        assert device == "cuda"
        self.log.append(f"empty {size}")
        return types.SimpleNamespace(zero_=lambda: self.log.append("flush"))

    def kernel(self, name, times):
        remaining = iter(times)

        def launch():
            self.log.append(name)
            self.now += next(remaining)

        return launch


class FakeEvent:
    def __init__(self, torch):
        self.torch = torch

    def record(self):
        self.time = self.torch.now

    def query(self):
        return self.torch.finished

    def elapsed_time(self, end):
        return end.time - self.time


@pytest.fixture
def torch(monkeypatch):
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


def test_cool_rounds_take_turns_and_flush_before_every_launch(torch):
    candidates = {
        "ours": torch.kernel("ours", [99, 1, 9, 2, 4, 4, 5]),
        "peer": torch.kernel("peer", [99, 3, 3, 3, 6, 7, 8]),
    }
    times = measure.cool_rounds(candidates, rounds=2, burst=3, flush_bytes=64, idle_s=0.0)
    # The first launch of each, 99 ms, is warm-up. Of each burst the median counts.
    assert times == {"ours": [2, 4], "peer": [3, 7]}
    one_round = ["flush", "ours"] * 3 + ["sync"] + ["flush", "peer"] * 3 + ["sync"]
    assert torch.log == ["empty 64", "ours", "peer", "sync", *one_round, *one_round]


def test_cool_rounds_rest_before_every_burst(torch, monkeypatch):
    pauses = []
    monkeypatch.setattr(measure.time, "sleep", pauses.append)
    measure.cool_rounds({"a": torch.kernel("a", [1] * 99), "b": torch.kernel("b", [1] * 99)})
    assert pauses == [0.1] * 14


def test_hot_rounds_take_turns(monkeypatch):
    calls = []

    def do_bench(launch, *, warmup, rep, return_mode):
        calls.append(launch())
        assert (warmup, rep, return_mode) == (25, 100, "median")
        return len(calls)

    monkeypatch.setitem(sys.modules, "triton.testing", types.SimpleNamespace(do_bench=do_bench))
    times = measure.hot_rounds({"a": lambda: "a", "b": lambda: "b"}, rounds=2)
    assert calls == ["a", "b", "a", "b"]
    assert times == {"a": [1, 3], "b": [2, 4]}


def test_watchdog_lets_a_finished_kernel_pass(torch):
    measure.watchdog_first_launch(torch.kernel("fine", [1]))
    assert torch.log == ["fine"]


def test_watchdog_ends_the_process_of_a_hung_kernel(torch, monkeypatch, capsys):
    torch.finished = False

    def leave(status):
        raise SystemExit(status)

    monkeypatch.setattr(measure.os, "_exit", leave)
    with pytest.raises(SystemExit) as caught:
        measure.watchdog_first_launch(torch.kernel("gemm", [1]), seconds=0.01, name="gemm 128x256")
    assert caught.value.code == 3
    assert capsys.readouterr().err == "kernel gemm 128x256 hung: not finished 0.01 s after its launch\n"


def fake_nvidia_smi(monkeypatch, directory, script):
    program = directory / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")


@pytest.mark.parametrize(
    ("script", "clock"), [("echo 1980", 1980), ("echo '[N/A]'", None), ("echo oops; exit 9", None)]
)
def test_sm_clock(monkeypatch, tmp_path, script, clock):
    fake_nvidia_smi(monkeypatch, tmp_path, script)
    assert measure.sm_clock_mhz() == clock


def test_sm_clock_without_nvidia_smi(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert measure.sm_clock_mhz() is None


def test_sm_clock_is_asked_under_load(torch, monkeypatch, tmp_path):
    fake_nvidia_smi(monkeypatch, tmp_path, "sleep 0.2; echo 1400")
    launches = []
    assert measure.sm_clock_mhz(lambda: launches.append(1), warm_s=0.0) == 1400
    assert len(launches) >= 20
    assert torch.log[-1] == "sync"


class Array:
    """Answers like a torch tensor, computes in numpy."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def double(self):
        return Array(self.values.astype(np.float64))

    def __sub__(self, other):
        return Array(self.values - other.values)

    def norm(self):
        return np.linalg.norm(self.values)


@pytest.mark.parametrize(
    ("out", "ref", "error"),
    [
        ([3.0, 4.0], [3.0, 4.0], 0.0),
        ([3.0, 4.5], [3.0, 4.0], 0.1),
        ([3.0, math.nan], [3.0, 4.0], math.inf),
        ([3.0, math.inf], [3.0, 4.0], math.inf),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([0.0, 1e-9], [0.0, 0.0], math.inf),
    ],
)
def test_relative_error(out, ref, error):
    assert measure.relative_error(Array(out), Array(ref)) == pytest.approx(error)


def test_relative_error_does_not_broadcast():
    with pytest.raises(ValueError, match="tensors of one shape"):
        measure.relative_error(Array([1.0, 1.0]), Array([[1.0], [1.0]]))


def test_tflops():
    # 8192^3 in 1.5 ms
    assert measure.tflops(2 * 8192**3, 1.5) == pytest.approx(733.0, abs=0.1)


def test_table():
    times = {"ours": [0.50, 0.51, 0.49], "cuBLAS": [0.55, 0.55, 0.55]}
    table = measure.format_table("4096^3", times, flops=2 * 4096**3, peer="cuBLAS", clock_mhz=1980)
    assert table.splitlines() == [
        "4096^3 (SM clock 1980 MHz)",
        "candidate         ms   TFLOP/s   spread  vs cuBLAS",
        "ours          0.5000     274.9     4.0%      1.100",
        "cuBLAS        0.5500     249.9     0.0%      1.000",
    ]


def test_table_with_an_unknown_peer():
    with pytest.raises(ValueError, match="one of ours; got 'theirs'"):
        measure.format_table("t", {"ours": [1.0]}, flops=1, peer="theirs")


def test_import_needs_neither_torch_nor_triton():
    code = "import sys; from benchmarks.gpu import measure; assert not {'torch', 'triton'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
