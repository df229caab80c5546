"""Replacements of Triton's names while the drop-in is installed; on the CPU launches run as machine code."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast

import triton
import triton.compiler
import triton.testing
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.driver import driver

from tlx_xdsl.runtime.host.measure import do_bench, do_bench_without_warmup
from tlx_xdsl.runtime.jit import jit as our_jit
from tlx_xdsl.runtime.jit.autotune import Config
from tlx_xdsl.runtime.jit.compiled_kernel import TLXCompiledKernel
from tlx_xdsl.runtime.jit.triton_compile import compile_source
from tlx_xdsl.runtime.jit.triton_kernel import TritonKernel
from tlx_xdsl.runtime.simulate.options import FRONTEND, PTX

from .cuda_as_cpu import replacements_of_torch
from .decorator import drop_in, settle
from .fork_text import fork_spelling
from .usage import multiplies_in_a_loop
from .without_gpu import CompiledKernel, CompiledStockKernel, Launched, NoGpu, interpreted, once


def _is_cuda_backend(self: GPUTarget) -> bool:
    return self.backend == "cuda"


def compiling(stock_compile: Callable[..., Any]) -> Callable[..., Any]:
    """`triton.compile` that hands sources of our kernels to our compiler."""

    @functools.wraps(stock_compile)
    def compile(src: Any, target: Any = None, options: Any = None, **environment: Any) -> Any:
        if isinstance(src, ASTSource):
            kernel: Any = src.fn
            settle(kernel)
            if isinstance(kernel, TritonKernel):
                return compile_source(src, target or cast(Any, driver.active).get_current_target(), options)
        return stock_compile(src, target=target, options=options, **environment)

    return compile


def lenient_autotune(stock_autotune: Callable[..., Any]) -> Callable[..., Any]:
    """`triton.autotune` that leaves names out of `key` that are no parameters, as Meta's Triton and 3.8 do silently."""

    @functools.wraps(stock_autotune)
    def autotune(configs: Any, key: Any, *positional: Any, **options: Any) -> Callable[[Any], Any]:
        def decorate(fn: Any) -> Any:
            known = [name for name in key if name in fn.arg_names]
            return stock_autotune(configs, known, *positional, **options)(fn)

        return decorate

    return autotune


def replacements(mode: str, target: str, warp_specialize: Any = None) -> Iterator[tuple[Any, str, Any]]:
    """Each name that is replaced: what has it, the name, and what it stands for from now on.

    With `warp_specialize` launches of plain kernels with products are specialised as `jit` has it. `mode` is one of
    `installation.Mode`, or `read`. Scripts reach `jit` and `Config` by several ways, Triton itself by others.
    """
    # `triton.runtime.jit` is a module, and both hold a `jit`.
    stock = import_module("triton.runtime.jit")
    autotuner = import_module("triton.runtime.autotuner")
    if mode == "cpu":
        jit = natively
    elif mode == "interpret" or (mode == "launch" and knobs.runtime.interpret):
        jit = interpreted(target)
    elif mode == "ptx":
        jit = interpreted(target, stage=PTX)
    elif mode == "check":
        from .checked import CheckedKernel

        jit = interpreted(target, CheckedKernel)
    elif mode == "record":
        from .recorded import RecordedKernel

        jit = interpreted(target, RecordedKernel, FRONTEND)
    elif mode == "read":
        jit = stock.jit
    elif mode == "compile":
        jit = drop_in(CompiledStockKernel, CompiledKernel)
    else:
        specialising = functools.partial(our_jit, warp_specialize=warp_specialize)
        jit = drop_in(stock.jit, specialising, multiplies_in_a_loop) if warp_specialize else drop_in(stock.jit, our_jit)
    yield from ((owner, "jit", jit) for owner in (triton, stock))
    compiler = import_module("triton.compiler.compiler")
    compile_any = compiling(compiler.compile)
    yield from ((owner, "compile", compile_any) for owner in (triton, triton.compiler, compiler))
    yield from ((owner, "Config", Config) for owner in (triton, triton.runtime, autotuner))
    tune = lenient_autotune(autotuner.autotune)
    yield from ((owner, "autotune", tune) for owner in (triton, triton.runtime, autotuner))
    yield TLXCompiledKernel, "spelling", staticmethod(fork_spelling)
    utilities = import_module("triton._utils")
    yield utilities, "type_canonicalisation_dict", {"float8_e8m0fnu": "u8", **utilities.type_canonicalisation_dict}
    if not hasattr(GPUTarget, "is_cuda_backend"):
        # Meta's Triton has this method, by which scripts see where they are.
        yield GPUTarget, "is_cuda_backend", _is_cuda_backend
    if mode == "cpu":
        yield import_module("triton.runtime.driver").driver, "_active", Cpu(target)
        yield triton.testing, "do_bench", do_bench
        yield triton.testing, "do_bench_cudagraph", do_bench_without_warmup
        yield from replacements_of_torch(target)
    elif mode != "launch":
        yield import_module("triton.runtime.driver").driver, "_active", NoGpu(target)
        yield from ((triton.testing, name, once) for name in ("do_bench", "do_bench_cudagraph"))


class NativeKernel(TritonKernel):
    """A kernel that runs as machine code of the CPU when it is launched; a warm-up compiles for the GPU.

    Scripts ask what a warm-up returns for registers and shared memory, to size their grids.
    """

    def run_here(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, warmup: bool = False) -> Any:
        """Launch on the CPU."""
        compiled = functools.partial(self.run_there, *args, grid=grid, warmup=True, **kwargs)
        return compiled() if warmup else NativeLaunch(super().run_here(grid, args, kwargs), compiled)


class NativeLaunch(Launched):
    """The result of a launch as machine code: what has run, and what the kernel compiles to for the GPU."""

    def __init__(self, program: Any, compiled: Callable[[], Any]):
        super().__init__(compiled)
        self.program = program


def natively(fn: Any = None, **options: Any) -> Any:
    """A decorator with the arguments of `triton.jit` that makes kernels for the CPU."""
    if fn is None:
        return functools.partial(natively, **options)
    return NativeKernel(fn, target="cpu", **options)


class Cpu(NoGpu):
    """A stand-in for Triton's driver: it answers for a GPU that is not there, and measures the CPU."""

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return how an autotuner measures."""
        return do_bench
