"""Running TTL kernels here: by their meaning, on the checking machine, or as C++ against stub headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from tlx_xdsl.backend.metalium.machine import MetaliumError, run as run_sources
from tlx_xdsl.errors import CompilationError, InputError, SourceLocation
from tlx_xdsl.interpreter.ttkernel import run as run_ttkernel
from tlx_xdsl.interpreter.ttl import run as run_tensors
from tlx_xdsl.language.ttl.kernel import Kernel
from tlx_xdsl.language.ttl.tensors import TensorSpec
from tlx_xdsl.numerics.tiles import PageLayout, from_pages, to_pages
from tlx_xdsl.runtime.host_values import on_host
from tlx_xdsl.runtime.ttl.compilation import CompiledKernel, Options, compile_kernel, synchronized_module
from tlx_xdsl.runtime.ttl.specs import parameters, specs_of
from tlx_xdsl.text.diagnostics import source_line

MACHINES = ("ttkernel", "tensors", "cpp")
"""What runs a kernel.

`tensors` runs the module after `ttl-insert-synchronization` on whole blocks; `ttkernel` the calls of TT-Metalium that
it becomes, with checks of every step; `cpp` the C++ text, compiled by g++ against headers of ours.
"""


def run(
    kernel: Kernel,
    *tensors: Any,
    machine: str = MACHINES[0],
    options: Options | None = None,
    schedule: str = "round-robin",
    seed: int = 0,
) -> None:
    """Run a kernel on arrays of numpy or tensors of torch, which it reads and writes in place.

    `schedule` and `seed` choose who goes on when several threads can (`interpreter/scheduler.py`).

    Raises CompilationError for an error in the kernel; of that class, a Fault for what it does wrong in the run.
    """
    if machine not in MACHINES:
        raise InputError(f"unknown machine '{machine}', expected one of {', '.join(MACHINES)}")
    arrays = [on_host(name, tensor) for name, tensor in zip(parameters(kernel), tensors, strict=False)]
    specs = specs_of(kernel, [*arrays, *tensors[len(arrays) :]])
    if machine == "tensors":
        run_tensors(synchronized_module(kernel, specs, options), arrays, schedule=schedule, seed=seed)
        return
    compiled = compile_kernel(kernel, specs, options)
    if machine == "ttkernel":
        capacity = compiled.manifest["options"]["dst_capacity"]
        run_ttkernel(compiled.module, arrays, schedule=schedule, seed=seed, capacity=capacity)
    else:
        run_cpp(compiled, specs, arrays, seed=seed)


def run_cpp(
    compiled: CompiledKernel, specs: Sequence[TensorSpec], arrays: Sequence[NDArray[Any]], *, seed: int = 0
) -> None:
    """Compile the C++ of a kernel against our stub headers, and run it on arrays, which it writes in place.

    Raises CompilationError for what it does wrong in the run, and where there is no C++ compiler.
    """
    layouts = [_layout(spec) for spec in specs]
    names = [each["name"] for each in compiled.manifest["tensors"]]
    pages = {
        name: to_pages(array, spec.dtype.name, layout)
        for name, array, spec, layout in zip(names, arrays, specs, layouts, strict=True)
    }
    try:
        run_sources(compiled.sources, compiled.manifest, pages, seed=seed)
    except MetaliumError as error:
        place = None if not error.file else SourceLocation(error.file, error.line)
        raise CompilationError(error.message, place, source_line=source_line(place)) from error
    for name, array, spec, layout in zip(names, arrays, specs, layouts, strict=True):
        array[...] = from_pages(pages[name], spec.shape, spec.dtype.name, layout).astype(array.dtype)


def _layout(spec: TensorSpec) -> PageLayout:
    match spec.layout.kind:
        case "sharded":
            assert spec.layout.grid is not None and spec.layout.tiles_per_shard is not None
            return PageLayout("sharded", spec.layout.grid, spec.layout.tiles_per_shard)
        case "interleaved":
            return PageLayout("interleaved")
        case _:
            return PageLayout()
