"""Launches with their arguments read ahead: what `kernel.bind` returns."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false, reportUntypedBaseClass=false, reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from triton.runtime.driver import driver

from tlx_xdsl.grid import sizes_of

if TYPE_CHECKING:
    from ..launch.launcher import Launcher
    from .compiled_kernel import TLXCompiledKernel


class BoundLaunch:
    """A kernel, its grid and its arguments: calling it enqueues the launch.

    `kernel` is the compiled kernel. The arguments stay alive with it. It works in the CUDA context in which it was
    made, and may be captured into a CUDA graph.
    """

    def __init__(self, kernel: TLXCompiledKernel, grid: int | Sequence[int], arguments: Sequence[Any], stream: Any):
        self.kernel = kernel
        self.grid = grid
        self._arguments = arguments
        device = driver.active.get_current_device()
        current: Callable[[int], int] = driver.active.get_current_stream
        self._stream = (lambda: stream) if stream is not None else (lambda: current(device))
        self._launches: dict[Any, Callable[[], None]] = {}
        # Now rather than at the first call: what is wrong with the arguments is to be seen here.
        self._prepare(self._stream())

    def __call__(self) -> None:
        """Enqueue the launch; returns without waiting for it. Raises CudaDriverError if the driver refuses it."""
        stream = self._stream()
        launch = self._launches.get(stream)
        if launch is None:
            launch = self._prepare(stream)
        launch()

    def _prepare(self, stream: Any) -> Callable[[], None]:
        launch = self.kernel.launcher.bind(self.in_ctas(), *self._arguments, stream=stream)
        self._launches[stream] = launch
        return launch

    def by(self, launcher: Launcher) -> Callable[[], None]:
        """Prepare a launch of another binary of the kernel, on the same grid and arguments in the current stream."""
        return launcher.bind(self.in_ctas(), *self._arguments, stream=self._stream())

    def in_ctas(self) -> tuple[int, int, int]:
        """Return the grid in CTAs: those that share tensors (`num_ctas`) stand side by side."""
        x, y, z = sizes_of(self.grid)
        return x * self.kernel.metadata.num_ctas, y, z
