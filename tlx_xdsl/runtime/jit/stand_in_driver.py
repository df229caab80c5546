"""Compiling through Triton's runtime where there is no GPU."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportAttributeAccessIssue=false, reportUntypedBaseClass=false, reportPrivateUsage=false

from __future__ import annotations

import contextlib
from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.runtime._async_compile import active_mode
from triton.runtime.driver import driver

from tlx_xdsl.targets import target_named

from ..launch.launcher import WARP_SIZE


class _StandIn:
    """The part of Triton's driver that `warmup` uses."""

    def __init__(self, capability: int, before: Any):
        self._target = GPUTarget("cuda", capability, WARP_SIZE)
        # Kernels are kept by device, compiled for the target that it had first: no real one, and not another target's.
        self._device = -capability
        # A kernel that was loaded on a GPU may be deleted meanwhile.
        self.utils = SimpleNamespace(unload_module=lambda module: before and before.utils.unload_module(module))

    def get_current_target(self) -> GPUTarget:
        return self._target

    def get_current_device(self) -> int:
        return self._device

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"there is no GPU to ask for '{name}': only the target is assumed (assume_target)")


def leave_the_gpu(capability: int) -> None:
    """Compile for a target from now on, without a GPU: a process that was forked must not use its parent's.

    It must not even ask which GPU that is: torch refuses any question about CUDA in such a process.
    """
    driver.set_active(_StandIn(capability, None))  # pyright: ignore[reportArgumentType]
    active_mode.set(None)


@contextlib.contextmanager
def assume_target(name: str) -> Generator[None]:
    """Have Triton's runtime compile for a target, such as `sm_90a`, whether or not such a GPU is there.

    Within, `kernel.warmup(...)` and `kernel.bind(...)` work with tensors on the CPU, and `triton.autotune` picks
    nothing, for nothing can be launched. What was compiled for a GPU, or for another target, is not used. Raises
    ValueError for an unknown target.
    """
    before = driver._active  # pyright: ignore[reportPrivateUsage]
    driver.set_active(_StandIn(target_named(name).capability, before))  # pyright: ignore[reportArgumentType]
    try:
        yield
    finally:
        driver._active = before  # pyright: ignore[reportPrivateUsage]
