"""The oracle's kernels through our own conversion, on a GPU and in the interpreter: the same arrays at the end.

`python -m tests.unit.interpreter.oracle.test_on_gpu` prints a line for each kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import ours
from tests.unit.interpreter.oracle import checking, running, test_oracle_by_value
from tests.versions import INSTALLED
from tlx_xdsl.backend import BackendOptions, compile_ttgir
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.interpreter.arguments import bind
from tlx_xdsl.interpreter.global_memory import GlobalMemory
from tlx_xdsl.interpreter.launch import Settings, clusters, run_clusters
from tlx_xdsl.interpreter.machine import Launch
from tlx_xdsl.numerics.arrays import is_float
from tlx_xdsl.runtime.launch.launcher import Launcher
from tlx_xdsl.runtime.launch.parameters import ArgumentSpec
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.transforms.pipelines import run_pipeline, ttgir_pipeline

TOLERANCE = {8: 1e-12, 4: 2e-5, 2: 2e-3, 1: 0.2}
"""Largest error over the largest value, by the bytes of a float; hardware approximates what the interpreter rounds."""
SINGLE = {"functions", "double_reductions", "float_arithmetic"}
"""Kernels that store as f64 what they compute in f32."""
UNDEFINED = {
    "floats_to_integers": "most numbers are out of the range of the narrow integers",
    "orders_and_scopes": "programs exchange and add at one address without an order",
    "flips_and_swizzles": "programs write over what others wrote, in the order in which they run",
}
"""Kernels with results that Triton does not define."""
TORCH = {"bfloat16": "bfloat16", "float8_e5m2": "float8_e5m2", "float8_e4m3fn": "float8_e4m3fn"}
"""Element types that torch makes of bits only."""


def usable(check: checking.Check) -> bool:
    """Return whether arguments are arrays and numbers, nothing is known of addresses, and results are defined."""
    types = running.cases()[check.kernel].arguments
    runtime = [types[name] for name in check.arguments]
    defined = check.prepare is None and check.kernel not in UNDEFINED
    return defined and all(isinstance(type_, str) and "tensordesc" not in type_ for type_ in runtime)


CHECKS = {
    f"{kernel}-{number}": check
    for kernel, checks in checking.CHECKS.items()
    for number, check in enumerate(checks)
    if usable(check)
}
assert test_oracle_by_value.CHECKS, "importing the references registers them"


def launcher(kernel: str) -> Launcher:
    """A kernel through our conversion and stock's later passes."""
    module = ours.launchable(running.cases()[kernel])
    run_pipeline(module, ttgir_pipeline(), make_context())
    text = print_module(module, profile=profile_for(INSTALLED or ""))
    result = compile_ttgir(text, BackendOptions())
    types = running.cases()[kernel].arguments
    runtime = [(name, type_) for name, type_ in types.items() if isinstance(type_, str)]
    return Launcher(
        result.cubin,
        name=result.metadata.name,
        arguments=[ArgumentSpec(name, type_.partition(":")[0]) for name, type_ in runtime],
        num_warps=result.metadata.num_warps,
        shared=result.metadata.shared,
        global_scratch_size=result.metadata.global_scratch_size,
    )


def on_device(array: np.ndarray) -> Any:
    """An array as a torch tensor on the GPU."""
    import torch

    if (name := TORCH.get(array.dtype.name)) is not None:
        return torch.from_numpy(array.view(f"i{array.itemsize}").copy()).cuda().view(getattr(torch, name))
    return torch.from_numpy(array.copy()).cuda()


def from_device(tensor: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """The array of a torch tensor."""
    import torch

    if dtype.name in TORCH:
        return tensor.view({1: torch.int8, 2: torch.int16}[dtype.itemsize]).cpu().numpy().view(dtype)
    return tensor.cpu().numpy()


def differences(check: checking.Check) -> dict[str, float]:
    """Return the largest difference between GPU and interpreter by array, in tolerances; integers must be equal.

    Where the interpreter has NaN, which may stand for an element that no load defines, nothing is compared.
    """
    kernel = launcher(check.kernel)
    rng = np.random.default_rng(7)
    arguments = {name: make(rng) for name, make in check.arguments.items()}
    names = [name for name, type_ in running.cases()[check.kernel].arguments.items() if isinstance(type_, str)]
    tensors = {name: on_device(value) for name, value in arguments.items() if isinstance(value, np.ndarray)}
    kernel(check.grid, *(tensors.get(name, arguments[name]) for name in names))
    plan, memory = running.plan_of(check.kernel, "ttgir"), GlobalMemory()
    bound = bind(plan.function, [arguments[name] for name in names], names, memory)
    launch = Launch(plan, memory, check.grid, (1, 1, 1), bound)
    list(run_clusters(launch, list(clusters(launch)), Settings()))
    found: dict[str, float] = {}
    for name, tensor in tensors.items():
        expected = arguments[name]
        got = from_device(tensor, expected.dtype)
        if not is_float(expected.dtype):
            found[name] = 0.0 if np.array_equal(got, expected) else np.inf
            continue
        tolerance = TOLERANCE[4 if check.kernel in SINGLE else expected.itemsize]
        have, want = got.astype(np.float64), expected.astype(np.float64)
        scale = np.max(np.abs(want[np.isfinite(want)]), initial=0.0) or 1.0
        with np.errstate(invalid="ignore"):
            gap = np.where((have == want) | np.isnan(want), 0.0, np.abs(have - want) / scale)
        found[name] = float(np.max(np.where(np.isnan(gap), np.inf, gap)) / tolerance)
    return found


@pytest.mark.gpu
@pytest.mark.parametrize("name", CHECKS)
def test_gpu_and_interpreter_agree(name: str) -> None:
    try:
        found = differences(CHECKS[name])
    except (CompilationError, NotImplementedError) as refusal:
        pytest.skip(f"not launched: {refusal}")
    assert {array: difference for array, difference in found.items() if difference > 1} == {}


if __name__ == "__main__":
    agree = 0
    for label, wanted in CHECKS.items():
        try:
            worst_by_argument = differences(wanted)
        except (CompilationError, NotImplementedError) as refusal:
            print(f"{label}: not launched: {str(refusal).splitlines()[0]}")
            continue
        agree += all(difference <= 1 for difference in worst_by_argument.values())
        worst = {key: f"{difference:.2g}" for key, difference in worst_by_argument.items() if difference}
        print(
            f"{label}: {'agree' if all(d <= 1 for d in worst_by_argument.values()) else 'DIFFER'} {worst or ''}",
            flush=True,
        )
    print(f"{agree} of {len(CHECKS)} agree")
