"""Launches that are prepared once and repeated on other tensors of the same shapes: only addresses change.

`Launcher.bind` keeps its tensors alive and where they are. Here the parameter block stays, and the caller writes into
it what has moved: 8 bytes of a pointer, or the address within a tensor map. The driver copies the block when it
enqueues a kernel, so the next change need not wait for anything.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping

from .cuda_driver import ERROR_INVALID_CONTEXT, CudaDriver, LaunchConfig
from .parameters import ParameterBlock


class MovableLaunch:
    """A kernel, its grid and its parameters in one CUDA context: `launch(stream)` enqueues it.

    `pointers` has the places of those arguments among the parameters that are addresses. `scratch_bytes` is what the
    kernel needs of scratch memory (`move_scratch`), for all of its CTAs. Changing addresses and launching are not
    synchronised: threads that share a launch take turns.
    """

    def __init__(
        self,
        driver: CudaDriver,
        context: int,
        config: LaunchConfig,
        function: int,
        block: ParameterBlock,
        movers: Mapping[str, Callable[[int], None]],
        pointers: Mapping[str, int],
        *,
        scratch_bytes: int,
        detail: str,
    ):
        self.driver = driver
        self.context = context
        self.function = function
        self._config = config
        # The block's memory is what the movers and the driver write and read.
        self._block = block
        # Enqueues the kernel and returns the driver's code, 0 for success, for `retry`.
        self.enqueue = driver.enqueuer(config, function, block.pointers)
        self._movers = movers
        self._pointers = pointers
        self.detail = detail
        self.scratch_bytes = scratch_bytes

    def mover(self, argument: str) -> Callable[[int], None]:
        """Return what puts another address into an argument: that of its tensor's first element, on the GPU.

        Raises ValueError for an argument that is no tensor or descriptor; the function does for an address that is not
        aligned as the kernel was compiled for.
        """
        if argument not in self._movers:
            raise ValueError(f"{self.detail}: expected one of the tensors {', '.join(self._movers)}, got {argument!r}")
        return self._movers[argument]

    def share(self, argument: str, cell: int) -> bool:
        """Have the address of a tensor read at each launch from the 8 bytes at a host address, a cell.

        Its mover then does nothing. Returns whether that can be: not for a descriptor.
        """
        if argument not in self._pointers:
            return False
        self._block.pointers[self._pointers[argument]] = cell
        return True

    def move_scratch(self, address: int) -> None:
        """Give the kernel `scratch_bytes` of memory at an address, a multiple of 128."""
        ctypes.c_uint64.from_address(self._block.addresses[-2]).value = address

    @property
    def parameters(self) -> int:
        """The host address of the addresses of the kernel's parameters."""
        return ctypes.addressof(self._block.pointers)

    def move_to(self, stream: int) -> None:
        """Have the next launches go to a stream, a CUstream as an integer."""
        self._config.stream = stream

    def __call__(self, stream: int) -> None:
        """Enqueue the kernel in a stream; return without waiting for it.

        Raises CudaDriverError if the driver refuses the launch, or reports the failure of an earlier kernel here.
        """
        self.move_to(stream)
        if code := self.enqueue():
            self.retry(code)

    def retry(self, code: int) -> None:
        """Enqueue the kernel again after `code` where that helps. Raises as a call does."""
        if code == ERROR_INVALID_CONTEXT:
            # A thread that has made no call to CUDA yet.
            self.driver.set_context(self.context)
            code = self.enqueue()
        if code:
            raise self.driver.failure("cuLaunchKernelEx", code, self.detail)
