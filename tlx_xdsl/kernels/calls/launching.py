"""Launches of kernels: on the GPU where their tensors are, or on the CPU for what is in its memory."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from tlx_xdsl.errors import CompilationError, MissingLibraryError
from tlx_xdsl.frontend.python.source import Signature
from tlx_xdsl.language.tlx.ranks import Peers
from tlx_xdsl.runtime.driver.host_values import ALIGNED, is_constant, signature_of
from tlx_xdsl.runtime.kernel import Kernel

from .operands import Described, Operand, torch_module

if TYPE_CHECKING:
    from tlx_xdsl.runtime.host.kernel import CpuKernel
    from tlx_xdsl.runtime.launch.launcher import Launcher
    from tlx_xdsl.runtime.launch.movable import MovableLaunch
    from tlx_xdsl.runtime.simulate.interpret import Interpretation

WORKSPACE = "workspace"
"""The name of a call's workspace in `Launch.sources` and `Prepared.tensors`."""

INTERPRETED_PROGRAMS = 4
"""Multiprocessors of the CPU, so to speak: persistent kernels take several tiles each, as on a GPU."""


class InterpretedWarning(UserWarning):
    """A kernel to import ran in the interpreter, since it is none for a CPU, or llvmlite is not installed."""


_INTERPRETED: set[Kernel] = set()
"""Kernels that machine code of the CPU can't have."""


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel with its arguments, ready to run as often as wanted.

    `grid` are programs along x, y and z; `constexprs` and `arguments` are by name, the latter in the order of the
    kernel's parameters. `device` is torch's device, None for the CPU. `sources` says for plans (`plans`) which
    of the function's tensors each tensor or descriptor among the arguments is of, by name.
    """

    kernel: Kernel
    grid: tuple[int, ...]
    arguments: Mapping[str, Any]
    constexprs: Mapping[str, Any]
    device: Any
    num_warps: int = 4
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    cluster: tuple[int, int, int] = (1, 1, 1)
    """CTAs of a cluster along x, y and z."""
    launch_pdl: bool = False
    """Whether it may start before the launch ahead of it on the stream has ended (programmatic dependent launch)."""

    maxnreg: int | None = None
    """Registers of each thread at the launch, where fewer than a program could have let more programs be resident."""

    aligned: tuple[str, ...] = ()
    """Arguments whose addresses are multiples of 16 bytes at every launch: the kernel is compiled for that."""

    @classmethod
    def of(
        cls, kernel: Any, grid: tuple[int, ...], values: Mapping[str, Any], constants: Mapping[str, Any],
        device: Any, sources: Mapping[str, str] | None = None, aligned: tuple[str, ...] = (),
        maxnreg: int | None = None, **more: Any,
    ) -> Launch:  # fmt: skip
        """A launch with `values` in any order, of which those that are None are constants; `more` are other fields.

        Operands, which stand for their memory, and descriptors of operands are sources by themselves, and other memory
        is of the workspace, where `sources` does not say another one.
        """
        found = dict(sources or {})
        order = {name: at for at, name in enumerate(kernel.arg_names)}
        given = {name: _memory_of(name, values[name], found) for name in sorted(values, key=order.__getitem__)}
        there = {name: value for name, value in given.items() if value is not None}
        absent = dict.fromkeys(given.keys() - there.keys())
        constexprs = {**constants, **absent}
        return cls(kernel, grid, there, constexprs, device, sources=found, aligned=aligned, maxnreg=maxnreg, **more)

    @property
    def signature(self) -> dict[str, Signature]:
        """The types of the arguments, in Triton's spelling."""
        types = {name: signature_of(name, value) for name, value in self.arguments.items()}
        return {name: f"{type_}:{ALIGNED}" if name in self.aligned else type_ for name, type_ in types.items()}

    @property
    def values(self) -> list[Any]:
        """The arguments of the driver: items of tuples one by one, without what the kernel is compiled for."""
        return [each for _, each in leaves(self.arguments)]

    def bind(self) -> Callable[[], Any]:
        """A function that runs the kernel each time that it is called, on the stream that is current now.

        The tensors are kept alive and must stay where they are. Compiles the kernel when it is new.

        Raises CompilationError when it can't be compiled, and what the CUDA driver has against the launch.
        """
        if self.device is None:
            return self.run_on_cpu
        torch = torch_module()
        with torch.cuda.device(self.device):
            stream = torch.cuda.current_stream().cuda_stream
            return self._loadable().bind(self.grid, *self.values, stream=stream)

    def movable(self) -> MovableLaunch:
        """The launch on the GPU that is current, without its tensors: see `Launcher.movable`.

        Raises CompilationError for a kernel that can't be compiled, RuntimeError for one that is not loaded while a
        CUDA graph is captured, and what the CUDA driver has against the launch.
        """
        return self._loadable().movable(self.grid, *self.values)

    def compiled(self) -> Launcher:
        """The kernel's launcher, loaded on no GPU yet. Compiles the kernel when it is new, which takes no GPU.

        Raises CompilationError when it can't be compiled.
        """
        types, constants = tuple(self.signature.items()), tuple(self.constexprs.items())
        return _launcher(self.kernel, types, constants, self.num_warps, self.cluster, self.launch_pdl, self.maxnreg)

    def _loadable(self) -> Launcher:
        """The kernel's launcher, where it can be loaded now if it is not. Compiles the kernel when it is new."""
        from tlx_xdsl.runtime.launch.launch_graph import refuse_while_capturing

        launcher = self.compiled()
        if not launcher.is_loaded():
            refuse_while_capturing(self.kernel.source.name)
        return launcher

    def run_on_cpu(self) -> None:
        """Run the kernel on arrays in the CPU's memory: plain `tl` as machine code, the rest in the interpreter.

        A warning (`InterpretedWarning`) says of each kernel once that the interpreter runs it, and why.
        """
        if self.kernel not in _INTERPRETED:
            try:
                on_cpu = cast("CpuKernel[..., Any]", self.kernel).on_cpu
                on_cpu.launch(self.grid, (), {**self.arguments, **self.constexprs})
                return
            except (CompilationError, MissingLibraryError) as error:
                _INTERPRETED.add(self.kernel)
                reason = error.message if isinstance(error, CompilationError) else error
                warnings.warn(
                    f"the kernel '{self.kernel.source.name}' runs in the interpreter on the CPU, hundreds of times "
                    f"slower than machine code: {reason}",
                    InterpretedWarning,
                    stacklevel=7,  # the caller of the function
                )
        self.interpret()

    def interpret(self, **options: Any) -> Interpretation:
        """Run the kernel in the interpreter; `options` are those of `tlx_xdsl.interpret`."""
        from tlx_xdsl.runtime.simulate.interpret import interpret

        wanted = {"num_warps": self.num_warps, "cluster": self.cluster, **_fusion(), **options}
        return interpret(self.kernel, self.grid, **self.arguments, **self.constexprs, options=wanted)


@dataclass(frozen=True)
class Launches:
    """Launches that follow each other on a stream, and the memory that they share while they run (None for none)."""

    parts: tuple[Launch, ...]
    workspace: Any = None

    def bind(self) -> Callable[[], Any]:
        """A function that runs them, as `Launch.bind`."""
        bound = [part.bind() for part in self.parts]
        if len(bound) == 1:
            return bound[0]

        def launch() -> None:
            for each in bound:
                each()

        return launch

    def interpret(self, **options: Any) -> Interpretation:
        """Run them in the interpreter; `options` are those of `tlx_xdsl.interpret`."""
        results = [part.interpret(**options) for part in self.parts]
        warnings = tuple(warning for result in results for warning in result.warnings)
        return replace(results[-1], warnings=warnings)


def _memory_of(name: str, value: Any, sources: dict[str, str]) -> Any:
    """Return an argument with the memory of the operands in it, whose names are put among the sources."""
    if isinstance(value, int):
        return value
    if isinstance(value, Operand):
        sources.setdefault(name, value.name)
        return value.value
    if isinstance(value, Described) or hasattr(value, "dtype"):
        sources.setdefault(name, getattr(value, "source", "") or WORKSPACE)
    if isinstance(value, list):  # of the ranks that are simulated
        return [_memory_of(name, item, sources) for item in cast("list[Any]", value)]
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        found = [_memory_of(f"{name}[{at}]", item, sources) for at, item in enumerate(items)]
        return cast("Any", type(items))(*found) if hasattr(items, "_fields") else tuple(found)
    return value


def leaves(arguments: Mapping[str, Any], *, with_tables: bool = True) -> list[tuple[str, Any]]:
    """The arguments of the driver by their names, items of tuples one by one, as `name[0]`; no constants.

    Without `with_tables`, those of symmetric tensors are left out, which stay where they are.
    """
    found: list[tuple[str, Any]] = []
    for name, value in arguments.items():
        if isinstance(value, tuple):
            items = enumerate(cast("tuple[Any, ...]", value))
            if with_tables or not isinstance(value, Peers):
                found += leaves({f"{name}[{at}]": item for at, item in items}, with_tables=with_tables)
        elif not is_constant(value):
            found.append((name, value))
    return found


@functools.cache
def _launcher(
    kernel: Kernel,
    signature: tuple[tuple[str, Signature], ...],
    constexprs: tuple[tuple[str, Any], ...],
    num_warps: int,
    cluster: tuple[int, int, int],
    launch_pdl: bool,
    maxnreg: int | None,
) -> Launcher:
    from tlx_xdsl.runtime.build import build

    options: dict[str, Any] = {"cluster": cluster, "launch_pdl": launch_pdl, "maxnreg": maxnreg, **_fusion()}
    return build(kernel, dict(signature), dict(constexprs), num_warps=num_warps, **options)


def _fusion() -> dict[str, Any]:
    """Return the arithmetic with which these kernels were written and measured, whatever the Triton; users may differ.

    A scale and a subtraction before an exponential are one instruction in attention.
    """
    from tlx_xdsl.backend.options import default_fp_fusion

    return {"enable_fp_fusion": default_fp_fusion("3.9")}


def multiprocessors(each: Operand) -> int:
    """Multiprocessors of the GPU where an operand is."""
    if each.device is None:
        return INTERPRETED_PROGRAMS
    return int(torch_module().cuda.get_device_properties(each.device).multi_processor_count)


def check_hopper(function: str, each: Operand) -> None:
    """Refuse a GPU for which the kernels of this package are not made. Raises RuntimeError."""
    if each.device is None:
        return
    torch = torch_module()
    capability = torch.cuda.get_device_capability(each.device)
    if capability != (9, 0):
        raise RuntimeError(
            f"{function}: expected a GPU of compute capability 9.0 (Hopper), got {capability[0]}.{capability[1]}: "
            f"{torch.cuda.get_device_name(each.device)}"
        )
