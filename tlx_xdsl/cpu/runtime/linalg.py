"""Kernels of the plain language in the dialects of upstream MLIR."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects.registry import make_context
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.text.printer import print_module
from tlx_xdsl.text.profiles import mlir_profile
from tlx_xdsl.text.verify import verify_module
from tlx_xdsl.transforms.pipelines import first_beyond_plain
from tlx_xdsl.transforms.placed import with_placed

from ..linalg.triton_to_linalg import linalg_pipeline


def linalg_text(
    source: KernelSource,
    specialization: Specialization,
    *,
    mlir_version: str = "newest",
    num_programs: bool = False,
    on_stage: Callable[[str, str], None] | None = None,
) -> str:
    """The module of a kernel in linalg, as upstream MLIR of the release `mlir_version` of LLVM reads it.

    With `num_programs` the sizes of the grid are arguments after the program ids. `on_stage` gets the name of each pass
    and the module after it. Remarks say which accesses are not structured, and why.

    Raises CompilationError, at the user's line, for what is no plain Triton or has no lowering; ValueError for an
    unknown release.
    """
    profile = mlir_profile(mlir_version)
    module = plain_module(source, specialization)
    context = make_context()
    if on_stage is not None:
        on_stage("frontend", print_module(module))
    for each in with_placed(linalg_pipeline(num_programs=num_programs), (*source.passes, *specialization.passes)):
        each.apply(context, module)
        if on_stage is not None:
            on_stage(each.name, print_module(module))
    verify_module(module)
    return print_module(module, profile=profile)


def plain_module(source: KernelSource, specialization: Specialization) -> ModuleOp:
    """The verified module that the frontend makes of a kernel of the plain language.

    Raises CompilationError at the first operation that is not plain Triton.
    """
    module = frontend_module(source, specialization)
    verify_module(module)
    if (op := first_beyond_plain(module, barriers=True)) is not None:
        raise error_at(op, f"'{op.name}' cannot be lowered to linalg: it is no operation of plain Triton")
    return module
