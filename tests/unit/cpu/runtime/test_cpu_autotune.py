"""Configurations and heuristics on the CPU: what is run, what is kept, and what a search leaves."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import time
from typing import Any

import numpy as np
import pytest

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.runtime.host.autotune import Config, CpuAutotuner, autotune, heuristics
from tlx_xdsl.runtime.host.measure import do_bench


class Kernel:
    """Stand-in with a kernel's interface that records its launches."""

    arg_names = ["x", "n", "BLOCK"]
    __name__ = "kernel"

    def __init__(self, work: Any = lambda **_: None):
        self.work = work
        self.launches: list[dict[str, Any]] = []

    def fn(self) -> None:
        pass

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        self.launches.append({**dict(zip(self.arg_names, args, strict=False)), **kwargs, "warmup": warmup})
        self.work(**self.launches[-1])
        return kwargs.get("BLOCK")


CONFIGS = [Config({"BLOCK": block}) for block in (64, 128, 256)]


def by_block(fn: Any, quantiles: Any) -> list[float]:
    """A benchmark that finds 128 fastest."""
    return [abs(fn.args[0].kwargs["BLOCK"] - 128.0)] * 3


def tuned(kernel: Any, configs: Any = CONFIGS, key: Any = ("n",), **options: Any) -> CpuAutotuner:
    return autotune(configs, key, **{"do_bench": by_block, **options})(kernel)


def test_the_best_is_found_once_for_each_key():
    kernel = Kernel()
    tuner = tuned(kernel)
    x = np.zeros(4)
    assert [tuner[(1,)](x, n) for n in (1, 1, 2)] == [128] * 3
    assert tuner.best_config == CONFIGS[1]
    assert list(tuner.cache) == [(1, "float64"), (2, "float64")]
    assert len(kernel.launches) == 3
    assert kernel.launches[0] == {
        "x": x, "n": 1, "BLOCK": 128, "num_warps": 4, "num_ctas": 1, "num_stages": 3, "warmup": False
    }  # fmt: skip
    tuner[(1,)](x.astype(np.float32), 1)
    assert len(tuner.cache) == 3


def test_times_are_real():
    kernel = Kernel(lambda BLOCK, **_: time.sleep(BLOCK**2 * 2e-7))
    tuner = tuned(kernel, do_bench=None, warmup=1, rep=4)
    assert tuner[(1,)](np.zeros(4), 1) == 64
    medians = [timing[0] for timing in tuner.configs_timings.values()]
    assert medians == sorted(medians)
    assert medians[0] > 0.8


def test_one_configuration_is_not_measured():
    kernel = Kernel()
    assert tuned(kernel, CONFIGS[:1], do_bench=lambda *_, **__: pytest.fail("measured"))[(1,)](np.zeros(1), 1) == 64
    assert tuned(kernel, [])[(1,)](np.zeros(1), 1) is None


def test_configurations_are_pruned():
    kernel = Kernel()
    by = {"early_config_prune": lambda configs, named, **kwargs: [c for c in configs if c.kwargs["BLOCK"] > named["n"]]}
    tuner = tuned(kernel, prune_configs_by=by)
    assert tuner[(1,)](np.zeros(1), 200) == 256
    with pytest.raises(ValueError, match="early_config_prune left no configuration of 'kernel'"):
        tuner[(1,)](np.zeros(1), 1000)
    by = {"perf_model": lambda BLOCK, **_: -BLOCK, "top_k": 2}
    tuner = tuned(kernel, prune_configs_by=by)
    tuner[(1,)](np.zeros(1), 1)
    assert [config.kwargs["BLOCK"] for config in tuner.configs_timings] == [256, 128]
    with pytest.raises(TypeError, match=r"top_k: .*found 2\.5"):
        tuned(kernel, prune_configs_by={**by, "top_k": 2.5})[(1,)](np.zeros(1), 1)


def test_arrays_are_reset_and_restored():
    def work(x: Any, n: int, **_: Any) -> None:
        assert n != 1 or x[0] == 0
        x += 1

    x = np.full(4, 7.0)
    tuned(Kernel(work), reset_to_zero=["x"], do_bench=do_bench, rep=1, warmup=0)[(1,)](x, 1)
    assert (x == 1).all()
    x = np.full(4, 7.0)
    tuned(Kernel(work), restore_value=["x"], do_bench=do_bench, rep=1, warmup=0)[(1,)](x, 2)
    assert (x == 8).all()


def test_hooks():
    seen: list[Any] = []
    configs = [Config({"BLOCK": block}, pre_hook=lambda named: seen.append(named["BLOCK"])) for block in (64, 128)]
    tuned(
        Kernel(), configs, do_bench=lambda fn, **_: fn() or [1.0] * 3,
        pre_hook=lambda named, reset_only=False: seen.append("reset" if reset_only else "pre"),
        post_hook=lambda named, exception: seen.append("post"),
    )[(1,)](np.zeros(1), 1)  # fmt: skip
    assert seen == [64, "pre", "post", 128, "pre", "post", "reset", 64]


def test_what_does_not_compile_is_left_out(caplog):
    def work(BLOCK: int, **_: Any) -> None:
        if BLOCK < 256:
            raise CompilationError(f"too small: {BLOCK}")

    tuner = tuned(Kernel(work), do_bench=do_bench, rep=1, warmup=0)
    with caplog.at_level(logging.WARNING, "tlx_xdsl.autotune"):
        assert tuner[(1,)](np.zeros(1), 1) == 256
    assert list(tuner.pruned.values()) == ["too small: 64", "too small: 128"]
    assert len(caplog.records) == 2
    with pytest.raises(CompilationError, match="too small: 64"):
        tuned(Kernel(work), CONFIGS[:2], do_bench=do_bench, rep=1, warmup=0)[(1,)](np.zeros(1), 1)


def test_any_other_error_is_the_callers():
    with pytest.raises(TypeError, match="wrong"):
        tuned(Kernel(lambda **_: (_ for _ in ()).throw(TypeError("wrong"))), do_bench=do_bench)[(1,)](np.zeros(1), 1)


def test_what_is_wrong_with_the_decorator():
    with pytest.raises(ValueError, match="key: no arguments of 'kernel': m; it has x, n, BLOCK"):
        tuned(Kernel(), key=["m"])
    with pytest.raises(ValueError, match="reset_to_zero: no arguments of 'kernel': y"):
        tuned(Kernel(), reset_to_zero=["y"])
    with pytest.raises(ValueError, match="gives what its configurations do: BLOCK"):
        tuned(Kernel())[(1,)](np.zeros(1), 1, BLOCK=64)
    with pytest.raises(TypeError, match="unexpected keyword argument 'warps'"):
        Config({}, warps=4)


def test_heuristics_see_all_arguments():
    kernel = Kernel()
    computed = {"BLOCK": lambda named: 2 * named["n"], "EVEN": lambda named: named["BLOCK"] % 4 == 0}
    decorated = heuristics(computed)(kernel)
    assert decorated[(1,)](np.zeros(1), 6) == 12
    assert kernel.launches[0]["EVEN"] is True
    tuner = tuned(heuristics({"EVEN": lambda named: named["BLOCK"] > 64})(kernel))
    assert tuner[(1,)](np.zeros(1), 1) == 128
    assert kernel.launches[-1]["EVEN"] is True


def test_warmup_compiles_all():
    kernel = Kernel()
    assert tuned(kernel).warmup(np.zeros(1), 1, grid=(1,)) == [64, 128, 256]
    assert all(each["warmup"] for each in kernel.launches)


def test_a_configuration_says_what_it_is():
    config = Config({"BLOCK": 64}, num_warps=8, maxnreg=32, pingpongAutoWS=True)
    assert str(config) == "BLOCK: 64, num_warps: 8, num_ctas: 1, num_stages: 3, maxnreg: 32"
    assert config == Config({"BLOCK": 64}, 8, maxnreg=32)
    assert config != Config({"BLOCK": 64})
    assert len({config, Config({"BLOCK": 64}, 8, maxnreg=32)}) == 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 2.0),
        ({"return_mode": "min"}, 1.0),
        ({"return_mode": "all"}, [1.0, 2.0, 3.0]),
        ({"quantiles": (0.5, 1.0)}, [2.0, 3.0]),
    ],
)
def test_do_bench(monkeypatch, options: dict[str, Any], expected: Any):
    # The first run and the estimate take 2 ms each; then 1, 2 and 3.
    times = iter([2, 2, 1, 2, 3])
    clock = [0]

    def work() -> None:
        clock[0] += next(timed) * 1_000_000

    timed = iter([0, *times])
    monkeypatch.setattr("tlx_xdsl.runtime.host.measure.time.perf_counter_ns", lambda: clock[0])
    assert do_bench(work, warmup=0, rep=6, **options) == pytest.approx(expected)


def test_without_triton():
    pytest.importorskip("llvmlite")
    script = """
        import sys
        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == "triton":
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Absent())
        import importlib.util
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "triton" else find(name, *rest)
        import numpy as np
        import tlx_xdsl
        from tests.unit.cpu.runtime import cpu_kernels
        kernel = tlx_xdsl.jit(cpu_kernels.add)
        configs = [tlx_xdsl.Config({"BLOCK": block}, num_warps=8) for block in (64, 1024)]
        tuned = tlx_xdsl.autotune(configs, key=["n"], warmup=1, rep=2)(kernel)
        x, y, z = (np.arange(5000, dtype=np.float32) for _ in range(3))
        tuned[lambda meta: (-(-meta["n"] // meta["BLOCK"]),)](x, y, z, 5000)
        assert (z == x + y).all() and len(tuned.configs_timings) == 2
        sized = tlx_xdsl.heuristics({"BLOCK": lambda named: 1024})(kernel)
        z[:] = 0
        sized[(5,)](x, y, z, 5000)
        assert (z == x + y).all()
        assert "triton" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=120)
