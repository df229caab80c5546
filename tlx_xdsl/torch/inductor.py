"""`torch.compile` on CPUs through Triton: inductor generates the kernels, and they run as machine code of ours.

    tlx_xdsl.torch.enable_inductor()
    compiled = torch.compile(function)

Inductor can generate Triton for a CPU (its setting `cpu_backend`), but stock Triton compiles none for it. Here each
graph is given to inductor with that setting, and its kernels are compiled for the types that it names, before the graph
runs. A graph that can't be had so is compiled by inductor's C++ backend, with a warning that says why.
"""

# torch has no types here: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import copy
import functools
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

from tlx_xdsl.errors import InputError

_PLACE = "torch._inductor.compile_fx"

_SETTINGS = {
    "cpu_backend": "triton",
    # Products are the library's, as they are for the C++ backend. Inductor's own templates are tuned in a process that
    # has no kernels of ours.
    "max_autotune_gemm_backends": "ATEN",
}


class Fallback(UserWarning):
    """The warning that a graph goes to inductor's C++ backend, with the reason."""


class _State:
    """The replacement that is in place, if any, and what it has replaced."""

    lock = threading.RLock()
    stock: Callable[..., Any] | None = None


def enable_inductor() -> None:
    """Let `torch.compile` generate Triton kernels for graphs whose tensors are in the CPU's memory, and run them.

    It is for all of the process, and for what is compiled from now on. Enabling twice changes nothing. Graphs with
    tensors of other devices stay inductor's, as do those that can't be compiled (see `Fallback`).
    `torch.compile(function, backend="tlx_xdsl")` does the same for one function, without this.

    Raises ModuleNotFoundError without torch or Triton, ValueError for a torch that generates no Triton for CPUs.
    """
    place = _probed()
    with _State.lock:
        if _State.stock is None:
            _State.stock = place.compile_fx
            place.compile_fx = _enabled(place.compile_fx)


def disable_inductor() -> None:
    """Take back `enable_inductor`; what was compiled stays as it is."""
    with _State.lock:
        if _State.stock is not None:
            setattr(import_module(_PLACE), "compile_fx", _State.stock)  # noqa: B010
            _State.stock = None


@contextmanager
def inductor_enabled() -> Generator[None]:
    """`enable_inductor` for the body of a `with` statement. What is enabled already stays so at its end.

    Functions are compiled when they are first called, and backward passes when they first run: what of that comes after
    the body is inductor's.
    """
    before = _State.stock
    enable_inductor()
    try:
        yield
    finally:
        if before is None:
            disable_inductor()


def backend(
    graph: Any, inputs: Sequence[Any], *, mode: str | None = None, options: Mapping[str, Any] | None = None
) -> Any:
    """The backend `tlx_xdsl` of `torch.compile`, which takes the modes and options of inductor's."""
    place = _probed()
    inductor: Any = import_module("torch._inductor")
    patches = {**inductor.list_mode_options(mode or "default"), **(options or {})}
    with _whole_graphs_uncached():
        return (_State.stock or place.compile_fx)(graph, inputs, config_patches=patches, inner_compile=compile_graph)


def _probed() -> Any:
    """The module of inductor's entry, in a torch that can generate Triton for CPUs."""
    import_module("triton")
    config: Any = import_module("torch._inductor.config")
    place = import_module(_PLACE)
    if "triton" not in str(config.__annotations__.get("cpu_backend")):
        version = import_module("torch").__version__
        raise InputError(f"torch {version} generates no Triton for CPUs: torch._inductor.config.cpu_backend knows none")
    return place


def _enabled(stock: Callable[..., Any]) -> Callable[..., Any]:
    """`compile_fx` of inductor, whose graphs are compiled by `compile_graph`."""

    @functools.wraps(stock)
    def compile_fx(model_: Any, example_inputs_: Any, *args: Any, **kwargs: Any) -> Any:
        # It calls itself, and others have compilers of their own.
        if args or "inner_compile" in kwargs:
            return stock(model_, example_inputs_, *args, **kwargs)
        with _whole_graphs_uncached():
            return stock(model_, example_inputs_, inner_compile=compile_graph, **kwargs)

    return compile_fx


def _whole_graphs_uncached() -> Any:
    """Keep a cache out that would give back graphs, forward and backward, without asking `compile_graph`.

    Graphs of the C++ backend and ours have one key there. Each graph by itself is cached under all settings.
    """
    return import_module("torch._functorch.config").patch(enable_autograd_cache=False)


def compile_graph(graph: Any, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    """Compile a graph of operations as inductor's `compile_fx_inner` does, by Triton on the CPU where that works.

    Warns (`Fallback`) where it does not.
    """
    compile_inner = import_module(_PLACE).compile_fx_inner
    reason = _reason_to_leave(graph, inputs, kwargs)
    if reason is None:
        # Inductor changes the graph that it is given.
        copied = import_module("torch.fx").GraphModule(graph, copy.deepcopy(graph.graph))
        copied.meta = graph.meta
        try:
            with _triton_on_cpu():
                return compile_inner(copied, inputs, *args, **kwargs)
        except Exception as error:
            # Whatever it is: the C++ backend raises again what is the graph's own fault.
            reason = _in_a_line(error)
    if reason:
        warnings.warn(f"a graph is compiled by inductor's C++ backend: {reason}", Fallback, stacklevel=2)
    return compile_inner(graph, inputs, *args, **kwargs)


def _reason_to_leave(graph: Any, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Say why inductor is to have a graph at once; empty where that goes without saying."""
    if kwargs.get("cpp_wrapper"):
        return "with cpp_wrapper a program in C++ is to launch its kernels"
    if kwargs.get("aot_mode") or import_module("torch._inductor.virtualized").V.aot_compilation:
        return "it is compiled ahead of time, for programs without Python"
    if any(device != "cpu" for device in _devices(graph, inputs)):
        return ""
    return None


def _devices(graph: Any, inputs: Sequence[Any]) -> Iterable[str]:
    """The kinds of devices of the tensors in a graph."""
    tree = import_module("torch.utils._pytree")
    Tensor = import_module("torch").Tensor
    values = [*inputs, *(node.meta.get("val") for node in graph.graph.nodes)]
    return {each.device.type for each in tree.tree_leaves(values) if isinstance(each, Tensor)}


def _in_a_line(error: BaseException) -> str:
    """The innermost cause of an error: its place, kind and message, and the line of the kernel where it names one."""
    while error.__cause__ is not None:
        error = error.__cause__
    inner = getattr(error, "inner_exception", error)
    text = str(inner).strip()
    lines = text.splitlines() or [type(inner).__name__]
    shown = " | ".join(each.strip() for each in lines[:2])
    return shown if "error:" in lines[0] else f"{type(inner).__name__}: {lines[0].strip()}"


@contextmanager
def _triton_on_cpu() -> Generator[None]:
    """Let inductor generate Triton for CPUs, with our kernels."""
    config: Any = import_module("torch._inductor.config")
    asynchronous: Any = import_module("torch._inductor.async_compile").AsyncCompile
    utilities: Any = import_module("torch.utils._triton")
    from .inductor_kernels import load_kernel

    with _State.lock, ExitStack() as stack:
        stack.enter_context(config.patch({name: value for name, value in _SETTINGS.items() if hasattr(config, name)}))
        stock = asynchronous.triton

        def triton(self: Any, kernel_name: str, source_code: str, device_str: str = "cuda") -> Any:
            if device_str != "cpu":
                return stock(self, kernel_name, source_code, device_str)
            return load_kernel(kernel_name, source_code)

        for owner, name, value in (
            (asynchronous, "triton", triton),
            # Of a kernel's source it is a part, which stock Triton's driver for a GPU would say.
            (utilities, "triton_hash_with_backend", _fingerprint),
        ):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        yield


def _fingerprint() -> str:
    from tlx_xdsl.runtime.driver.fingerprint import compiler_fingerprint

    return str(compiler_fingerprint()).upper()
