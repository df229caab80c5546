"""Compile-time properties of the GPU that a kernel is compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .marks import builtin

if TYPE_CHECKING:
    from typing import Protocol

    class Target(Protocol):
        """A GPU: `backend` ("cuda"), `arch` (90 for sm_90) and `warp_size` (32)."""

        backend: str
        arch: int
        warp_size: int

    from .arguments import Int

_target_info = builtin("tl.target_info")


@_target_info
def current_target() -> Target:
    """The target: an object with `backend` ("cuda"), `arch` (90 for sm_90) and `warp_size` (32)."""
    ...


@_target_info
def is_cuda() -> bool:
    """Say whether the target is an NVIDIA GPU: it always is."""
    ...


@_target_info
def cuda_capability_geq(major: Int, minor: Int = 0) -> bool:
    """Say whether the target's compute capability is at least `major`.`minor`."""
    ...


@_target_info
def is_hip() -> bool:
    """Say whether the target is an AMD GPU: it never is."""
    ...


@_target_info
def is_hip_cdna3() -> bool:
    """Say whether the target is an AMD GPU of that kind: it never is."""
    ...


@_target_info
def is_hip_cdna4() -> bool:
    """Say whether the target is an AMD GPU of that kind: it never is."""
    ...


@_target_info
def is_hip_gfx1250() -> bool:
    """Say whether the target is an AMD GPU of that kind: it never is."""
    ...
