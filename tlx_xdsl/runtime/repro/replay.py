"""Functions that the scripts of reproducers call: they run the passes on a module that is given as text."""

from __future__ import annotations

from tlx_xdsl.analysis.launch_budget import check_launch
from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.profiles import profile_for
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.pipelines import first_beyond_plain, run_pipeline

from ..driver.compilation import passes_for, text_for_triton


def lower(text: str, triton_version: str | None) -> str:
    """Lower a module of the frontend to the text that stock Triton of a version gets; None is no version in particular.

    Raises CompilationError where a pass refuses the module.
    """
    module = parse_module(text, filename="module.mlir")
    check_launch(module)
    plain = first_beyond_plain(module) is None
    profile = None if triton_version is None else profile_for(triton_version)
    run_pipeline(module, passes_for(profile, plain=plain), make_context())
    verify_module(module)
    return text_for_triton(module, profile, plain=plain)
