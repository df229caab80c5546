"""The examples on each machine, in each schedule of transfers and of threads."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from tlx_xdsl.ttl import runtime as runtime
from tlx_xdsl.ttl.runtime import MACHINES, Options

EXAMPLES = sorted((Path(__file__).parents[4] / "examples" / "ttl").glob("*.py"))


def load(path):
    spec = importlib.util.spec_from_file_location(f"ttl_example_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("schedule", [True, False], ids=["scheduled", "as_written"])
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, machine, schedule, monkeypatch):
    if machine == "cpp" and shutil.which("g++") is None:
        pytest.skip("needs g++")
    run, runs = runtime.run, []

    def on_machine(kernel, *tensors):
        runs.append(kernel.name)
        run(kernel, *tensors, machine=machine, options=Options(schedule=schedule), schedule="random", seed=1)

    monkeypatch.setattr(runtime, "run", on_machine)
    load(path).main()
    assert runs


@pytest.mark.parametrize("path", [each for each in EXAMPLES if each.stem in ("pipe_multicast", "softmax_row")], ids=str)
def test_results_do_not_depend_on_the_schedule(path, monkeypatch):
    run, results = runtime.run, []

    def in_schedules(kernel, *tensors):
        for schedule, seed in (("round-robin", 0), ("adversarial", 1), ("random", 2)):
            copies = [np.array(each) for each in tensors]
            run(kernel, *copies, schedule=schedule, seed=seed)
            results.append([each.tobytes() for each in copies])
        run(kernel, *tensors)

    monkeypatch.setattr(runtime, "run", in_schedules)
    load(path).main()
    assert results
    assert all(each == results[0] for each in results)
