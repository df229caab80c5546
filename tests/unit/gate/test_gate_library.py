"""The kernels to import and the examples, as they are launched on small inputs: the gate finds nothing in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.gallery.synchronisation.example_runs import CASES as EXAMPLES
from tests.unit import volume
from tests.unit.ptx.test_ptx_library import CASES as LIBRARY
from tlx_xdsl.backend import installed_toolchain
from tlx_xdsl.compat.frozen import Frozen
from tlx_xdsl.gate import Manner, Subject, gate
from tlx_xdsl.grid import Grid
from tlx_xdsl.kernels.calls.launching import Launch
from tlx_xdsl.runtime.kernel import Kernel

# The library's tests have no types.
# pyright: basic
pytestmark = pytest.mark.backend

SECONDS = 120.0
"""Time of a processor for each run."""


def subject(
    kernel: Kernel, grid: Grid, arguments: Mapping[str, Any], constants: Mapping[str, Any], target: str, **options: Any
) -> Subject:
    frozen = Frozen({**arguments, **constants}, constants)
    name = kernel.source.name
    return Subject(name, kernel.source, {}, grid, frozen.thawed, f"{grid} {frozen.identity}", target, options)


def judged(subjects: list[Subject]) -> None:
    """Ask the gate. Launches with the same types and numbers are judged once."""
    triton = installed_toolchain()
    assert triton is not None
    once = {each.key(): each for each in subjects}
    report = gate(list(once.values()), Manner([triton], SECONDS), progress=False)
    assert {each.outcome for each in report.verdicts} == {"clean"}, "\n".join(map(str, report.verdicts))


@pytest.mark.parametrize("name", LIBRARY if volume.is_full_for_each_version() else ["rope", "gemm in clusters"])
def test_kernels_to_import(name: str, monkeypatch: pytest.MonkeyPatch):
    launches: list[Subject] = []
    interpret: Callable[..., Any] = Launch.interpret

    def noted(launch: Launch, **options: Any) -> Any:
        launches.append(
            subject(
                launch.kernel, launch.grid, launch.arguments, launch.constexprs, "sm_90a",
                num_warps=launch.num_warps, cluster=launch.cluster,
            )
        )  # fmt: skip
        return interpret(launch, **options)

    monkeypatch.setattr(Launch, "interpret", noted)
    monkeypatch.setattr(Launch, "run_on_cpu", noted)
    LIBRARY[name](monkeypatch)
    judged(launches)


@pytest.mark.parametrize("name", EXAMPLES if volume.is_full_for_each_version() else ["blackwell-gemm-ragged"])
def test_examples(name: str):
    case = EXAMPLES[name]()
    parameters = [each.name for each in case.kernel.source.parameters if each.name not in case.constexprs]
    arguments = dict(zip(parameters, case.arguments, strict=True))
    judged([subject(case.kernel, case.grid, arguments, case.constexprs, **{"target": "sm_90a", **case.options})])
