"""The oracle's kernels, ready to run at several stages of the pipeline."""

from __future__ import annotations

import functools

from tests.gallery.cases import Case
from tests.oracle import loading, ours
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.interpreter.code import Plan
from tlx_xdsl.interpreter.plan import make_plan
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.transforms.pipelines import run_pipeline, ttgir_pipeline

STAGES = ("frontend", "ttgir", "text")
"""After the frontend, after all passes, and that printed for Triton 3.9 and read again."""

CAPABILITIES = {"gather_and_scatter": 100}
"""The compute capabilities of kernels that the usual target lacks something for: TMA gather and scatter."""


@functools.cache
def cases() -> dict[str, Case]:
    """All kernels of the oracle by name, over our objects."""
    return {name: case for path in loading.files() for name, case in loading.load(path, ours=True).items()}


@functools.cache
def plan_of(name: str, stage: str) -> Plan:
    """A kernel of the oracle at a stage, ready to run."""
    module = ours.launchable(cases()[name], capability=CAPABILITIES.get(name, 90))
    if stage != "frontend":
        run_pipeline(module, ttgir_pipeline(), make_context())
    if stage == "text":
        module = parse_module(print_module(module, profile=profile_for("3.9.0")))
    return make_plan(module)
