"""One launch of a kernel: on the GPU where its tensors are, or in the interpreter for what is in the CPU's memory."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tlx_xdsl.kernels.operands import Operand, torch_module
from tlx_xdsl.runtime.host_values import signature_of
from tlx_xdsl.runtime.kernel import Kernel

if TYPE_CHECKING:
    from tlx_xdsl.runtime.interpret import Interpretation
    from tlx_xdsl.runtime.launch.launcher import Launcher

INTERPRETED_PROGRAMS = 4
"""Multiprocessors of the CPU, so to speak: persistent kernels take several tiles each, as on a GPU."""


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel with its arguments, ready to run as often as wanted.

    `grid` are programs along x, y and z; `constexprs` and `arguments` are by name, the latter in the order of the
    kernel's parameters. `device` is torch's device, None for the interpreter.
    """

    kernel: Kernel
    grid: tuple[int, ...]
    arguments: Mapping[str, Any]
    constexprs: Mapping[str, Any]
    device: Any
    num_warps: int = 4

    @property
    def signature(self) -> dict[str, str]:
        """The types of the arguments, in Triton's spelling."""
        return {name: str(signature_of(name, value)) for name, value in self.arguments.items()}

    def bind(self) -> Callable[[], Any]:
        """A function that runs the kernel each time that it is called, on the stream that is current now.

        The tensors are kept alive and must stay where they are. Compiles the kernel when it is new.

        Raises CompilationError when it can't be compiled, and what the CUDA driver has against the launch.
        """
        if self.device is None:
            return self.interpret
        torch = torch_module()
        launcher = _launcher(self.kernel, tuple(self.signature.items()), tuple(self.constexprs.items()), self.num_warps)
        with torch.cuda.device(self.device):
            stream = torch.cuda.current_stream().cuda_stream
            return launcher.bind(self.grid, *self.arguments.values(), stream=stream)

    def interpret(self, **options: Any) -> Interpretation:
        """Run the kernel in the interpreter; `options` are those of `tlx_xdsl.interpret`."""
        from tlx_xdsl.runtime.interpret import interpret

        wanted = {"num_warps": self.num_warps, **options}
        return interpret(self.kernel, self.grid, **self.arguments, **self.constexprs, options=wanted)


@functools.cache
def _launcher(
    kernel: Kernel, signature: tuple[tuple[str, str], ...], constexprs: tuple[tuple[str, Any], ...], num_warps: int
) -> Launcher:
    from tlx_xdsl.runtime.build import build

    return build(kernel, dict(signature), dict(constexprs), num_warps=num_warps)


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
