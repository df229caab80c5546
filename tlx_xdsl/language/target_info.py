"""Compile-time properties of the GPU that a kernel is compiled for."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.marks import builtin

_target_info = builtin("tl.target_info")


@_target_info
def current_target() -> Any:
    """The target: an object with `backend` ("cuda"), `arch` (90 for sm_90) and `warp_size` (32)."""


@_target_info
def is_cuda() -> Any:
    """Say whether the target is an NVIDIA GPU: it always is."""


@_target_info
def cuda_capability_geq(major: Any, minor: Any = 0) -> Any:
    """Say whether the target's compute capability is at least `major`.`minor`."""


@_target_info
def is_hip() -> Any:
    """Say whether the target is an AMD GPU: it never is."""


@_target_info
def is_hip_cdna3() -> Any:
    """Say whether the target is an AMD GPU of that kind: it never is."""


@_target_info
def is_hip_cdna4() -> Any:
    """Say whether the target is an AMD GPU of that kind: it never is."""


@_target_info
def is_hip_gfx1250() -> Any:
    """Say whether the target is an AMD GPU of that kind: it never is."""
