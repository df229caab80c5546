"""`@tlx_xdsl.jit` with Triton: a kernel that Triton's own runtime launches and our compiler compiles.

What is launched on arrays in the CPU's memory does not go that way, but runs as machine code (`cpu/runtime`).

Triton's `JITFunction` specialises on arguments, keeps compiled kernels, calls hooks and launches; autotuners,
heuristics and `do_bench` know it. Two places are ours: what a kernel's cache key covers, and what compiles it.
"""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false, reportUntypedBaseClass=false, reportPrivateUsage=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from math import prod
from typing import Any, NamedTuple, cast

from triton.compiler import ASTSource
from triton.language import constexpr as stock_constexpr
from triton.runtime._async_compile import FutureKernel
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor as StockTensorDescriptor

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.language.core import constexpr

from ..driver.fingerprint import kernel_fingerprint
from ..driver.host_values import signature_of
from ..driver.reproducible import note_failed_launch
from ..driver.specialization import CLUSTER_OPTION, META_OPTIONS, Target, cluster_option
from ..host.kernel import CpuKernel
from ..host.memory import are_in_cpu_memory
from ..kernel import Kernel
from ..kernel_call import Launch
from ..launch.tensor_descriptor import TensorDescriptor
from .bound import BoundLaunch
from .triton_compile import compile_cached, with_fusion
from .triton_errors import DoesNotFitError, with_interpreter_face


class TritonKernel(CpuKernel, JITFunction[Any]):
    """A kernel of ours as a `triton.runtime.jit.JITFunction`.

    `kernel[grid](*args, **constexprs_and_options)` launches; `warmup` compiles; `bind` prepares a fast launch. Launch
    options are Triton's (`num_warps`, `num_stages`, `num_ctas`, `maxnreg`, ...), `ctas_per_cga`, and `target` and
    `checks` of `CpuKernel`.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        version: Any = None,
        repr: Callable[..., str] | None = None,
        launch_metadata: Callable[..., Any] | None = None,
        do_not_specialize: Iterable[int | str] | None = None,
        do_not_specialize_on_alignment: Iterable[int | str] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        target: Target | None = None,
        checks: bool = False,
        passes: Iterable[str] = (),
    ):
        CpuKernel.__init__(
            self,
            fn,
            noinline=bool(noinline),
            passes=passes,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            target=target,
            checks=checks,
        )
        self.refusal: DoesNotFitError | None = None
        """Why the last configuration that could never launch could not."""
        JITFunction.__init__(
            self,
            self.source.fn,
            version=version,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            noinline=noinline,
            repr=repr,
            launch_metadata=launch_metadata,
        )

    def check_parameters(self) -> None:
        """Check what the arguments of `jit` say of the parameters.

        Raises CompilationError at a constexpr that is not to be specialised: it always is a part of the kernel.
        """
        # Reading them checks it.
        assert self.source.parameters is not None

    @property
    def cache_key(self) -> str:
        """The hash of the kernel's source and all that it reaches."""
        with self._hash_lock:
            digest: str | None = self.hash
            if not digest:
                found = kernel_fingerprint(self.source)
                digest = found.digest
                self.hash, self.used_global_vals = digest, found.global_values
        return digest

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, but keep our compiler.

        Triton's runtime puts its own there when it meets a device, while another thread may be about to compile.
        """
        if name != "compile":
            super().__setattr__(name, value)

    @wraps(Kernel.compile)
    def compile(self, *args: Any, **kwargs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Compile to text, as `Kernel.compile`; asked by Triton's runtime, to a binary through its cache."""
        if args and isinstance(args[0], ASTSource):
            return compile_cached(*args, **kwargs)
        return Kernel.compile(self, *args, **kwargs)

    def _pack_args(
        self, backend: Any, kwargs: dict[str, Any], bound_args: Any, specialization: Any, options: Any
    ) -> tuple[Any, ...]:
        # Triton refuses options that it does not know.
        cluster = cluster_option(kwargs.get(CLUSTER_OPTION))
        known = {name: value for name, value in kwargs.items() if name not in META_OPTIONS}
        parsed, *rest = super()._pack_args(backend, with_fusion(known), bound_args, specialization, options)
        if cluster is not None:
            if parsed.num_ctas > 1 and prod(cluster) > 1:
                raise ValueError(
                    f"kernel '{self.__name__}': with num_ctas={parsed.num_ctas} the CTAs of a cluster share tensors, "
                    f"with {CLUSTER_OPTION}={cluster} each has its own: choose one"
                )
            # Frozen against users, but what the compiler gets is its dictionary.
            vars(parsed)[CLUSTER_OPTION] = cluster
        return parsed, *rest

    def preload(self, specialization_data: str) -> Any:
        """Compile what a `jit_cache_hook` was called with, in this process or another; see Triton's `JITFunction`."""
        options = json.loads(specialization_data).get("options", {})
        before = _preloaded_cluster.set(cluster_option(options.get(CLUSTER_OPTION)))
        try:
            return super().preload(specialization_data)
        finally:
            _preloaded_cluster.reset(before)

    def _do_compile(
        self, key: Any, signature: Any, device: Any, constexprs: Any, options: Any, attrs: Any, warmup: bool
    ) -> Any:
        cluster = _preloaded_cluster.get()
        if cluster is not None:
            vars(options)[CLUSTER_OPTION] = cluster
        return super()._do_compile(key, signature, device, constexprs, options, attrs, warmup)

    def _call_hook(self, hook: Any, *args: Any) -> bool | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        # Triton's versions differ in these parameters. Among them are the constants, which it makes JSON of; there it
        # knows kernels by their class's name.
        return super()._call_hook(hook, *(_with_named_kernels(arg) for arg in args)) if hook else None

    def _unsafe_update_src(self, new_src: str) -> None:
        raise NotImplementedError(f"the kernel '{self.__name__}' is compiled as it stands in its file")

    def runs_here(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether a launch with these arguments is one on the CPU."""
        target = self.target_of(kwargs) if self.target or "target" in kwargs else None
        if target is not None:
            return target != "gpu"
        # A tensor of a GPU is mostly the first, and has it settled in a tenth of a microsecond.
        for value in args:
            if getattr(value, "is_cuda", False):
                return False
        return are_in_cpu_memory((*args, *kwargs.values()))

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch on `grid`, or only compile; see Triton's `JITFunction`.

        Raises RuntimeError where Triton finds no GPU, and as compiling does.
        """
        if self.runs_here(args, kwargs):
            return self.run_here(grid, args, kwargs, warmup=warmup)
        return self.run_there(*args, grid=grid, warmup=warmup, **kwargs)

    def run_there(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launch on a GPU through Triton's runtime, or only compile for it: see `run`."""
        _drop_target(self, kwargs)
        try:
            # To look for what is ours among the arguments takes a microsecond: only once Triton has refused them. A
            # hook would be called twice then.
            if not self.pre_run_hooks:
                try:
                    return _launch(self, *args, grid=grid, warmup=warmup, **kwargs)
                except TypeError:
                    if not any(map(_holds_ours, (*args, *kwargs.values()))):
                        raise
            named = {name: _as_stock(value) for name, value in kwargs.items()}
            return _launch(self, *map(_as_stock, args), grid=grid, warmup=warmup, **named)
        except DoesNotFitError as error:
            self.refusal = error
            raise
        except RuntimeError as error:
            if not _is_for_want_of_a_gpu(error):
                if not warmup:
                    note_failed_launch(self.source, grid, args, kwargs, error)
                raise
            given = dict(zip(self.arg_names, args, strict=False)) | kwargs
            for each in self.params:
                if not each.is_constexpr and isinstance(given.get(each.name), list | dict | set):
                    # No kernel takes it: the argument is at fault, not the machine.
                    signature_of(each.name, given[each.name])
            raise RuntimeError(
                f"the kernel '{self.__name__}' can't be launched: Triton finds no GPU. With arrays in the CPU's memory "
                "it runs there, and its method interpret runs it with all checks; warmup compiles it within "
                "tlx_xdsl.runtime.assume_target('sm_90a')"
            ) from None

    def run_here(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, warmup: bool = False) -> Any:
        """Launch on the CPU, or only compile for it.

        Raises what `kernel[grid](...)` of a `CpuKernel` does, as errors that Triton's users catch, too.
        """
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        try:
            if warmup:
                return self.on_cpu.compile(args, kwargs)
            return self._launch_on(grid, *args, **kwargs)
        except CompilationError as error:
            raise with_interpreter_face(error) from error

    def __getitem__(self, grid: Any) -> Launch:
        """The kernel on a grid of CTAs: one to three numbers, or a function of the arguments by name."""

        def launch(*args: Any, **kwargs: Any) -> Any:
            if self.runs_here(args, kwargs):
                return self.run_here(grid, args, kwargs)
            # The first attempt of `run`, without its frame.
            if not self.pre_run_hooks and "target" not in kwargs:
                try:
                    return _launch(self, *args, grid=grid, warmup=False, **kwargs)
                except TypeError:
                    if not any(map(_holds_ours, (*args, *kwargs.values()))):
                        raise
                except RuntimeError as error:
                    if not _is_for_want_of_a_gpu(error):
                        note_failed_launch(self.source, grid, args, kwargs, error)
                        raise
            return self.run_there(*args, grid=grid, warmup=False, **kwargs)

        setattr(launch, "__wrapped__", self.launch_shape)  # noqa: B010
        return launch

    def bind(
        self, grid: int | Sequence[int] | Callable[[Mapping[str, Any]], Any], *args: Any, **kwargs: Any
    ) -> Callable[[], Any]:
        """Compile, read the arguments, and return a launch that repeats with almost no host work.

        Takes what `kernel[grid](...)` takes. Tensors are read by address, descriptors by their tensor map, numbers by
        value, all of them now. The launch goes to the stream that is current when it is called, unless `stream=`
        names one. Launch hooks are not called, pre-run hooks only now.

        Raises as `kernel[grid](...)` does, CudaDriverError where there is no GPU.
        """
        if self.runs_here(args, kwargs):
            return CpuKernel.bind(self, cast(Any, grid), *args, **kwargs)
        _drop_target(self, kwargs)
        stream = None if "stream" in self.arg_names else kwargs.pop("stream", None)
        given = dict(kwargs)
        compiled: Any = self.run_there(*args, grid=None, warmup=True, **kwargs)
        if compiled is None:
            raise RuntimeError(
                f"there is nothing to launch: a jit_cache_hook kept '{self.__name__}' from being compiled"
            )
        if isinstance(compiled, FutureKernel):
            compiled = compiled.result()
        _, _, _, _, binder = self.device_caches[_current_device()]
        values, _, _ = binder(*map(_as_stock, args), **{name: _as_stock(value) for name, value in given.items()})
        values = cast("dict[str, Any]", values)
        dims = cast(Any, grid(values) if callable(grid) else grid)
        return BoundLaunch(compiled, dims, compiled.runtime_arguments(list(values.values())), stream)

    warmup = cast(Any, JITFunction.warmup)
    __call__ = Kernel.__call__
    __repr__ = Kernel.__repr__
    # Triton's own hashes the source, which it must read for that.
    __hash__ = object.__hash__


_launch = JITFunction.run


def _drop_target(kernel: TritonKernel, kwargs: dict[str, Any]) -> None:
    """Take out an option that is ours."""
    if "target" in kwargs and "target" not in kernel.arg_names:
        del kwargs["target"]


def _current_device() -> int:
    return driver.active.get_current_device()


_preloaded_cluster: ContextVar[tuple[int, int, int] | None] = ContextVar("_preloaded_cluster", default=None)
"""The cluster of what is being preloaded: Triton drops options that are not its own."""


def _is_for_want_of_a_gpu(error: RuntimeError) -> bool:
    return str(error).startswith("0 active drivers")


class _KernelName(NamedTuple):
    """Triton's record of a kernel that is an argument of another."""

    module: str
    fn: Any


_KernelName.__name__ = "JITFunction"  # By this it is known.


def _with_named_kernels(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    values = cast("dict[Any, Any]", value)
    return {
        key: _KernelName(each.module, each.fn) if isinstance(each, TritonKernel) else each
        for key, each in values.items()
    }


def _holds_ours(value: Any) -> bool:
    """Return whether an argument is, or holds within tuples, an object of ours that Triton's runtime does not know."""
    if isinstance(value, tuple):
        return any(map(_holds_ours, cast("tuple[Any, ...]", value)))
    return type(value) in (TensorDescriptor, constexpr)


def _as_stock(value: Any) -> Any:
    """Triton's runtime recognises descriptors and constants by their class."""
    if isinstance(value, tuple) and _holds_ours(cast("tuple[Any, ...]", value)):
        items: list[Any] = [_as_stock(item) for item in cast("tuple[Any, ...]", value)]
        cls: Any = type(cast(Any, value))
        return cls(*items) if hasattr(cls, "_fields") else cls(items)
    if type(value) is constexpr:
        return stock_constexpr(value.value)
    if type(value) is not TensorDescriptor:
        return value
    # Since Triton 3.8; before, its class has no such field.
    rounding = {"round_f32_to_tf32": True} if value.round_f32_to_tf32 else {}
    return StockTensorDescriptor(value.base, value.shape, value.strides, value.block_shape, value.padding, **rounding)
