"""Scripts on a machine without a GPU: launches are interpreted, or compile and run nothing."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import dataclasses
import functools
import time
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction, KernelInterface

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.runtime.driver.specialization import CLUSTER_OPTION, META_OPTIONS
from tlx_xdsl.runtime.jit.triton_errors import with_interpreter_face
from tlx_xdsl.runtime.jit.triton_kernel import TritonKernel
from tlx_xdsl.runtime.simulate.interpret import Interpretation, interpret_source
from tlx_xdsl.runtime.simulate.options import TTGIR, Options
from tlx_xdsl.targets import Target, target_named

from .cuda_as_cpu import MULTIPROCESSORS, Event
from .pointers import tensors_reached

_WARP_SIZE = 32


class CompiledStockKernel(JITFunction[Any]):
    """A kernel of stock Triton's that compiles when it is launched and does not run: its launches are warm-ups."""

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Compile."""
        return super().run(*args, grid=grid, warmup=True, **kwargs)


class CompiledKernel(TritonKernel):
    """A kernel of ours that compiles when it is launched and does not run: its launches are warm-ups."""

    __getitem__ = KernelInterface.__getitem__

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Compile."""
        return super().run_there(*args, grid=grid, warmup=True, **kwargs)


class InterpretedKernel(TritonKernel):
    """A kernel that runs in the interpreter when it is launched."""

    __getitem__ = KernelInterface.__getitem__
    gpu = "sm_90a"
    """The GPU that it is written for."""
    stage = TTGIR
    """What of it runs: the module after our passes, or the final PTX."""

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Run all programs on the CPU; a warm-up compiles.

        Raises KeyError for a keyword that is neither a parameter nor a launch option, as stock Triton does, and what
        `tlx_xdsl.interpret` raises.
        """
        compiled = functools.partial(super().run_there, *args, grid=grid, warmup=True, **kwargs)
        if warmup:
            return compiled()
        try:
            result = self.perform(_launch(self, grid, *args, **kwargs))
        except CompilationError as error:
            raise with_interpreter_face(error) from error
        return InterpretedLaunch(result, compiled)

    def perform(self, launch: Launch) -> Interpretation:
        """Run a launch, and warn of what it leaves unfinished."""
        result = launch.run()
        for each in result.warnings:
            place = each.location
            file, line = (place.filename, place.line) if place else (self.__name__, 0)
            warnings.warn_explicit(each.message, InterpreterWarning, file, line)
        return result


class Launched:
    """The result of a launch on the CPU, which scripts take for what a launch on a GPU returns.

    They look at what the kernel compiles to (`asm`, `metadata`, ...). It is compiled when the first of it is asked for.
    """

    def __init__(self, compiled: Callable[[], Any]):
        self._compile = compiled

    @functools.cached_property
    def compiled(self) -> Any:
        """The kernel compiled for the GPU."""
        return self._compile()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.compiled, name)


class InterpretedLaunch(Launched):
    """The result of a launch in the interpreter: how the run went, and what the kernel compiles to."""

    def __init__(self, interpretation: Interpretation, compiled: Callable[[], Any]):
        super().__init__(compiled)
        self.interpretation = interpretation


def interpreted(
    target: str, kind: type[InterpretedKernel] = InterpretedKernel, stage: str = TTGIR
) -> Callable[..., Any]:
    """A decorator with the arguments of `triton.jit` that makes kernels for the interpreter, or for the PTX machine."""

    def jit(fn: Any = None, **options: Any) -> Any:
        if fn is None:
            return functools.partial(jit, **options)
        kernel = kind(fn, **options)
        kernel.gpu, kernel.stage = target, stage
        return kernel

    return jit


@dataclasses.dataclass(frozen=True)
class Launch:
    """A launch by a script, as the interpreter takes it."""

    source: KernelSource
    grid: Any
    arguments: dict[str, Any]
    """By name."""
    options: Options
    compile_options: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """The options of the launch that are those of a compile, as the script says them."""

    def run(self) -> Interpretation:
        """Run all programs. Raises as `interpret` does."""
        return interpret_source(self.source, self.grid, self.arguments, self.options)


def _launch(kernel: InterpretedKernel, grid: Any, *args: Any, **kwargs: Any) -> Launch:
    for hook in kernel.pre_run_hooks:
        hook(*args, **kwargs)
    named = {name: value for name, value in kwargs.items() if name in kernel.arg_names}
    launch = {name: value for name, value in kwargs.items() if name not in named}
    unknown = sorted(launch.keys() - _launch_options())
    if unknown:
        raise KeyError(f"Keyword argument {unknown[0]} was specified but unrecognised")
    # As compiled: our passes have put in the fences and barriers of clusters that scripts leave to the compiler.
    # Scripts for Meta's TLX are known to run on GPUs: what the hardware keeps beyond PTX's promises they may rely on.
    options: dict[str, Any] = {
        "target": kernel.gpu, "stage": kernel.stage, "unwritten": "warn", "tensor_core_order": "issue",
    }  # fmt: skip
    options |= {name: launch[name] for name in ("num_warps", "num_ctas") if launch.get(name) is not None}
    cluster = launch.get(CLUSTER_OPTION)
    if cluster is not None:
        options["cluster"] = tuple(cluster)
    named |= dict(zip(kernel.arg_names, args, strict=False))
    options["reachable"] = tensors_reached(named.values())
    kernel.source.signature.bind(**named)
    compiled_with = {name: launch[name] for name in _COMPILE_OPTIONS if launch.get(name) is not None}
    return Launch(kernel.source, grid, named, Options(**options), compiled_with)


_COMPILE_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")


class InterpreterWarning(UserWarning):
    """A warning of what a kernel has left unfinished when its programs ended, or what our passes had to say of it."""


@functools.cache
def _launch_options() -> frozenset[str]:
    from triton.backends.nvidia.compiler import CUDAOptions

    return frozenset(field.name for field in dataclasses.fields(CUDAOptions)) | META_OPTIONS | {"warmup"}


class NoGpu:
    """A stand-in for Triton's driver, which answers for a GPU that is not there."""

    def __init__(self, target: str):
        chosen = target_named(target)
        self._capability = chosen.capability
        self.utils = SimpleNamespace(get_device_properties=functools.partial(_device_properties, chosen))
        """The part of the driver's own module that scripts use: `driver.active.utils.get_device_properties(device)`."""

    def get_current_target(self) -> GPUTarget:
        """The GPU that scripts see."""
        return GPUTarget("cuda", self._capability, _WARP_SIZE)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Major and minor number of its capability."""
        return divmod(self._capability, 10)

    def get_current_device(self) -> int:
        """The number of the only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Keep the only device."""

    def get_current_stream(self, device: int = 0) -> int:
        """The default stream."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return where scripts are to put their tensors: into the CPU's memory."""
        return import_module("torch").device("cpu")

    def get_device_interface(self) -> Any:
        """Return what scripts use of `torch.cuda` to wait for kernels."""
        return SimpleNamespace(synchronize=lambda *_: None, current_device=self.get_current_device, Event=Event)

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return how an autotuner measures."""
        return once

    def get_empty_cache_for_benchmark(self) -> None:
        """Return None: there is no L2 cache to be cleared."""

    def clear_cache(self, cache: None) -> None:
        """Do without a cache."""


def _device_properties(target: Target, device: int | None = 0) -> dict[str, int]:
    """Return what Triton's driver says of a device: sizes in bytes, clocks in kHz, the width of the bus in bits."""
    return {
        "max_shared_mem": target.shared_bytes,
        "max_num_regs": 65536,
        "multiprocessor_count": MULTIPROCESSORS,
        "warpSize": _WARP_SIZE,
        "sm_clock_rate": 1_980_000,
        "mem_clock_rate": 2_619_000,
        "mem_bus_width": 5120,
    }


def once(
    fn: Callable[[], Any],
    warmup: Any = None,
    rep: Any = None,
    grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """`triton.testing.do_bench` that runs `fn` once: its time on the CPU in ms, in the form that is asked for."""
    before = time.perf_counter()
    fn()
    elapsed = (time.perf_counter() - before) * 1e3
    if quantiles is not None:
        return [elapsed] * len(quantiles)
    return [elapsed] if return_mode == "all" else elapsed
